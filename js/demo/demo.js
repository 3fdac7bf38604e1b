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

function tell(error) {
  const trouble = find("#trouble");
  trouble.hidden = error === null;
  trouble.textContent = error === null ? "" : `${error.name}: ${error.message}`;
  if (error !== null) console.error(error);
}

/** Do something, and say in the page what goes wrong. */
async function attempt(act) {
  tell(null);
  try {
    await act();
  } catch (error) {
    tell(error);
  }
}

const milliseconds = (ms) => (ms < 0.1 ? `${(ms * 1000).toFixed(ms < 0.01 ? 1 : 0)} µs` : `${ms.toFixed(ms < 10 ? 2 : 0)} ms`);

async function open(source, name, data = []) {
  program?.dispose();
  method = null;
  const start = performance.now();
  program = await load(source, { data });
  const took = performance.now() - start;
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
  showInstructions(info);
  drawPlan(find("#plan canvas"), find("#plan .note"), info, (first, last) => {
    for (const row of find("#instructions tbody").rows) row.className = row.dataset.index >= first && row.dataset.index <= last ? "lit" : "";
  });
  find("#outputs .list").replaceChildren();
  inputs = info.inputs.map((input, i) => makeInput(input, i, () => attempt(run)));
  find("#inputs .list").replaceChildren(...inputs.map((input) => input.element));
  const start = performance.now();
  method = program.loadMethod(info.name);
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

async function run() {
  if (method === null) return;
  find("#time").textContent = "running …";
  await new Promise((resolve) => setTimeout(resolve)); // so that it shows
  const given = inputs.map((input) => input.value());
  const { outputs, instructions } = method.profile(given);
  const sum = instructions.reduce((all, { milliseconds: ms }) => all + ms, 0);
  const [alone, profiles] = method.stateNames.length > 0 ? [sum, [instructions]] : measure(given);
  find("#time").textContent = milliseconds(alone);
  find("#outputs .list").replaceChildren(...outputs.map(showOutput));
  showTimes(profiles);
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
  const chosen = [...files].find((file) => file.name.endsWith(".pte")) ?? files[0];
  const data = [...files].filter((file) => file.name.endsWith(".ptd"));
  return attempt(() => open(chosen, chosen.name, data));
}

find("#file").onchange = (event) => openFiles(event.target.files);
find("#sample").onclick = () => attempt(() => open("digits.pte", "digits.pte"));
find("#run").onclick = () => attempt(run);
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("over");
});
addEventListener("dragleave", () => document.body.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  if (event.dataTransfer.files.length > 0) openFiles(event.dataTransfer.files);
});
addEventListener("resize", () => method && drawPlan(find("#plan canvas"), find("#plan .note"), method.info, () => {}));

await attempt(async () => {
  const runtime = await defaultRuntime();
  find("#about").textContent += ` ${runtime.kernelCount} operators, ${runtime.backends.at(-1)}.`;
  const asked = new URLSearchParams(location.search).get("open");
  if (asked !== null) await open(asked, asked.split("/").pop());
});
