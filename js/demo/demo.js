/** The page: opens what is dropped, shows it, runs it. `?open=URL` opens that one at once. */

import { defaultRuntime, load } from "../src/index.js";
import { makeInput } from "./inputs.js";
import { showOutput } from "./outputs.js";
import { bytes, drawPlan } from "./plan.js";

const find = (selector) => document.querySelector(selector);
const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const BUDGET = 100; // milliseconds of running it again and again: a browser's clock may be as coarse as 0.1 ms
const MOST_RUNS = 2000; // or may stand still

let program = null;
let method = null;
let inputs = [];
let asked = 0; // number of the program that was asked for last

function tell(error, of) {
  const trouble = find("#trouble");
  trouble.hidden = error === null;
  trouble.textContent = error === null ? "" : [...(of ? [of] : []), error.name, error.message].join(": ");
  if (error !== null) console.error(error);
}

/** Do something, and say in the page what goes wrong, and with which file. */
async function attempt(act, of = "") {
  tell(null);
  try {
    await act();
  } catch (error) {
    tell(error, of);
  }
}

/** An error that says what a person did who uses the page. */
const mistake = (message) => Object.assign(new Error(message), { name: "Not possible" });

const milliseconds = (ms) => (ms < 0.1 ? `${(ms * 1000).toFixed(ms < 0.01 ? 1 : 0)} µs` : `${ms.toFixed(ms < 10 ? 2 : 0)} ms`);

async function open(source, name, data = []) {
  const number = ++asked;
  const start = performance.now();
  const opened = await load(source, { data });
  const took = performance.now() - start;
  if (number !== asked) return opened.dispose(); // another one was asked for meanwhile
  program?.dispose(); // what is shown stays in use where the other can't be opened
  program = opened;
  method = null;
  find("main").hidden = false;
  find("#drop").hidden = true;
  find("#name").textContent = name;
  find("#methods").replaceChildren(
    ...program.methods.map((info) => element("button", { type: "button", textContent: info.name, onclick: () => attempt(() => choose(info)) })),
  );
  await choose(program.methods.find((info) => info.name === "forward") ?? program.methods[0], took);
}

function fact(name, value) {
  return element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value }));
}

async function choose(info, opened = 0) {
  for (const button of find("#methods").children) button.ariaPressed = String(button.textContent === info.name);
  method?.dispose();
  method = null;
  find("#facts").replaceChildren();
  showInstructions(info);
  clearResults();
  drawPlan(find("#plan canvas"), find("#plan .note"), info, (first, last) => {
    for (const row of find("#instructions tbody").rows) row.className = row.dataset.index >= first && row.dataset.index <= last ? "lit" : "";
  });
  const changed = (prepare = () => {}) => attempt(async () => {
    await prepare();
    await run();
  });
  inputs = info.inputs.map((input, i) => makeInput(input, i, changed));
  find("#inputs .list").replaceChildren(...inputs.map((input) => input.element));
  const start = performance.now();
  try {
    method = program.loadMethod(info.name);
  } catch (error) {
    if (error.status === "InvalidState" && info.values.some((value) => value.external)) error.message = `drop the .pte together with its .ptd files: ${error.message}`;
    throw error;
  }
  const took = opened + performance.now() - start;
  const { total } = method.memory;
  const backends = [...new Set(info.delegates)].join(", ");
  const facts = { operators: info.operators.length, memory: bytes(total), loaded: milliseconds(took), ...(backends ? { backend: backends } : {}) };
  find("#facts").replaceChildren(...Object.entries(facts).map(([name, value]) => fact(name, value)));
  await run();
}

function showInstructions(info) {
  const { values } = info;
  const told = (index) => (values[index]?.kind === "tensor" ? `${values[index].dtype} [${values[index].shape.join(", ")}]` : "");
  const rows = info.instructions.map((instruction, i) => {
    const result = instruction.arguments.map(told).findLast((text) => text !== "") ?? "";
    const cells = [i, "", instruction.name, result].map((text) => element("td", { textContent: text }));
    const row = element("tr", {}, ...cells);
    row.dataset.index = i;
    return row;
  });
  find("#instructions tbody").replaceChildren(...rows);
  find("#instructions h2").textContent = `Instructions (${rows.length})`;
}

function showTimes(profiles) {
  const rows = find("#instructions tbody").rows;
  const times = new Array(rows.length).fill(0); // of all turns of a loop
  for (const { index, milliseconds: ms } of profiles.flat()) times[index] += ms / profiles.length;
  const most = Math.max(...times, 0);
  times.forEach((ms, i) => {
    rows[i].cells[1].textContent = milliseconds(ms);
    rows[i].cells[1].style.setProperty("--share", most > 0 ? ms / most : 0);
  });
}

/** Nothing stays of an earlier run. */
function clearResults() {
  find("#time").textContent = "";
  find("#outputs .list").replaceChildren();
  for (const row of find("#instructions tbody").rows) {
    row.cells[1].textContent = "";
    row.cells[1].style.removeProperty("--share");
  }
}

async function run() {
  if (method === null) throw mistake("this method could not be loaded: choose another one, or open another program");
  const chosen = method;
  find("#time").textContent = "running …";
  await new Promise((resolve) => setTimeout(resolve)); // so that it shows
  if (chosen !== method) return;
  try {
    const given = inputs.map((input) => input.value());
    const { outputs, instructions } = method.profile(given);
    const sum = instructions.reduce((all, { milliseconds: ms }) => all + ms, 0);
    const [alone, profiles] = method.stateNames.length > 0 ? [sum, [instructions]] : measure(given);
    find("#time").textContent = milliseconds(alone);
    find("#outputs .list").replaceChildren(...outputs.map(showOutput));
    showTimes(profiles);
  } catch (error) {
    clearResults();
    throw error;
  }
}

/** Milliseconds of a run, the mean of as many as there is time for, and profiles of as many. */
function measure(given) {
  let count = 0;
  const start = performance.now();
  for (; count === 0 || (count < MOST_RUNS && performance.now() - start < BUDGET); count++) method.run(given);
  const mean = (performance.now() - start) / count;
  const profiles = [];
  const begin = performance.now();
  while (profiles.length === 0 || (profiles.length < MOST_RUNS && performance.now() - begin < BUDGET)) profiles.push(method.profile(given).instructions);
  return [mean, profiles];
}

function openFiles(files) {
  const data = files.filter((file) => file.name.endsWith(".ptd"));
  const others = files.filter((file) => !data.includes(file));
  const chosen = others.find((file) => file.name.endsWith(".pte")) ?? others[0] ?? data[0];
  return attempt(() => {
    if (others.length === 0) throw mistake("a .ptd holds data of a program: drop it together with its .pte, both at once");
    return open(chosen, chosen.name, data);
  }, chosen.name);
}

find("#file").onchange = ({ target }) => {
  const files = [...target.files];
  target.value = ""; // so that the same file can be chosen again
  if (files.length > 0) openFiles(files);
};
find("#sample").onclick = () => attempt(() => open("digits.pte", "digits.pte"), "digits.pte");
find("#run").onclick = () => attempt(run);
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("over");
});
addEventListener("dragleave", () => document.body.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  if (event.dataTransfer.files.length > 0) openFiles([...event.dataTransfer.files]);
});
addEventListener("resize", () => method && drawPlan(find("#plan canvas"), find("#plan .note"), method.info, () => {}));

await attempt(async () => {
  const runtime = await defaultRuntime();
  find("#about").textContent += ` ${runtime.kernelCount} operators, ${runtime.backends.at(-1)}.`;
  const wanted = new URLSearchParams(location.search).get("open");
  if (wanted !== null) await attempt(() => open(wanted, wanted.split("/").pop()), wanted.split("/").pop());
});
