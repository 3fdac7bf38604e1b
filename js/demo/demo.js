/** The page: opens what is dropped, shows it, runs it. `?open=URL` opens that one at once. */

import { defaultRuntime, load } from "../src/index.js";
import { loadTokenizer } from "../src/llm/index.js";
import { readNpz } from "../src/npy.js";
import { element, find, milliseconds, mistake } from "./dom.js";
import { makeInput, nameOf } from "./inputs.js";
import { showOptions } from "./options.js";
import { showOutput } from "./outputs.js";
import { bytes, drawPlan } from "./plan.js";
import { canWrite, setProgram, setTokenizer, stop, write } from "./writer.js";

const BUDGET = 100; // milliseconds of running it again and again: a browser's clock may be as coarse as 0.1 ms
const MOST_RUNS = 2000; // or may stand still

let program = null;
let method = null;
let inputs = [];
let options = null; // of the backends of the method that is shown
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

/** `arrays` are files for its inputs. */
async function open(source, name, { data = [], tokenizer, arrays = [] } = {}) {
  const number = ++asked;
  const start = performance.now();
  const [opened, reader] = await Promise.all([load(source, { data }), tokenizer && loadTokenizer(tokenizer)]);
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
  setProgram(program, reader);
  await choose(program.methods.find((info) => info.name === "forward") ?? program.methods[0], took, arrays);
}

function fact(name, value) {
  return element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value }));
}

function drawMemory(info) {
  drawPlan(find("#plan canvas"), find("#plan .note"), info, (first, last) => {
    for (const row of find("#instructions tbody").rows) row.className = row.dataset.index >= first && row.dataset.index <= last ? "lit" : "";
  });
}

async function choose(info, opened = 0, arrays = []) {
  for (const button of find("#methods").children) button.ariaPressed = String(button.textContent === info.name);
  method?.dispose();
  method = null;
  find("#facts").replaceChildren();
  showInstructions(info);
  clearResults();
  drawMemory(info);
  const changed = (prepare = () => {}) => attempt(async () => {
    await prepare();
    await run();
  });
  const isShort = canWrite(program); // a whole window of a language model would take long
  inputs = info.inputs.map((input, i) => makeInput(input, i, changed, isShort));
  find("#inputs .list").replaceChildren(...(inputs.length > 0 ? inputs.map((input) => input.element) : ["This method takes none."]));
  const backends = [...new Set(info.delegates)];
  options = showOptions(find("#options .list"), program.runtime, backends, () => attempt(async () => {
    prepareMethod(info);
    await run();
  }));
  find("#options").hidden = options.count === 0;
  prepareMethod(info, opened);
  await (arrays.length > 0 ? fill(arrays, null) : run());
}

/** Loads the method that is shown, with the options that are set; the facts say what it takes. */
function prepareMethod(info, opened = 0) {
  const start = performance.now();
  let loaded;
  try {
    loaded = program.loadMethod(info.name, { options: options.given() });
  } catch (error) {
    if (error.status === "InvalidState" && info.values.some((value) => value.external)) error.message = `drop the .pte together with its .ptd files: ${error.message}`;
    throw error;
  }
  method?.dispose(); // it stays in use where the other can't be loaded
  method = loaded;
  options.explain(method);
  const took = opened + performance.now() - start;
  const backends = [...new Set(info.delegates)].join(", ");
  const facts = { operators: info.operators.length, memory: bytes(method.memory.total), loaded: milliseconds(took), ...(backends ? { backend: backends } : {}) };
  find("#facts").replaceChildren(...Object.entries(facts).map(([name, value]) => fact(name, value)));
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
  find("#instructions table").hidden = rows.length === 0;
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
    const isOnce = method.stateNames.length > 0 || sum > BUDGET; // again it would be another, or long
    const [alone, profiles] = isOnce ? [sum, [instructions]] : measure(given);
    find("#time").textContent = milliseconds(alone);
    find("#outputs .list").replaceChildren(...(outputs.length > 0 ? outputs.map(showOutput) : ["This method gives none."]));
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

const NUMPY = /\.np[yz]$/i;
const isInput = (file) => NUMPY.test(file.name) || file.type.startsWith("image/");

/** The inputs that a file goes into: the one that it was dropped on, those with its numbers, or the first that takes such. */
async function inputsFor(file, target) {
  const under = inputs.find((input) => input.element.contains(target));
  if (under !== undefined) return [under];
  if (/\.npz$/i.test(file.name)) {
    const names = [...(await readNpz(file)).keys()];
    const numbered = inputs.filter((input, i) => input.take && nameOf(names, i) !== undefined);
    if (numbered.length > 0) return numbered;
  }
  const number = /(\d+)\.npy$/i.exec(file.name)?.[1]; // as in in0.npy, in1.npy
  const isFor = ({ take, isPicture }, i) => (NUMPY.test(file.name) ? take && (number === undefined || i === Number(number)) : isPicture);
  return [inputs.find(isFor) ?? inputs.find(({ take }) => take)];
}

/** Puts numpy's files and pictures into inputs, and runs the method. */
async function fill(files, target) {
  if (program === null) throw mistake(`${files[0].name} is an input: open a program first`);
  for (const file of files) {
    for (const input of await inputsFor(file, target)) {
      if (input?.take === undefined) throw mistake(`no input of ${find("#name").textContent} takes ${file.name}`);
      await input.take(file);
    }
  }
  await run();
}

/** What was dropped or chosen: a program with what belongs to it, a tokenizer, or inputs. */
function openFiles(files, target = null) {
  const withEnd = (end) => files.filter((file) => file.name.toLowerCase().endsWith(end));
  const data = withEnd(".ptd");
  const [tokenizer] = withEnd(".json");
  const arrays = files.filter(isInput);
  const others = files.filter((file) => ![...data, ...arrays, tokenizer].includes(file));
  const chosen = withEnd(".pte")[0] ?? others[0];
  const first = chosen ?? arrays[0] ?? tokenizer ?? data[0];
  const used = new Set([first]);
  return attempt(async () => {
    if (chosen !== undefined) {
      for (const file of [...data, tokenizer, ...arrays]) used.add(file);
      await open(chosen, chosen.name, { data, tokenizer, arrays });
    } else if (arrays.length > 0 || tokenizer !== undefined) {
      for (const file of [...arrays, tokenizer]) used.add(file);
      if (tokenizer !== undefined) await setTokenizer(tokenizer);
      if (arrays.length > 0) await fill(arrays, target);
    } else {
      throw mistake("a .ptd holds data of a program: drop it together with its .pte, both at once");
    }
    const left = files.filter((file) => !used.has(file)).map(({ name }) => name);
    if (left.length > 0) throw mistake(`left out: ${left.join(", ")}; a page opens one .pte with its .ptd files, a tokenizer.json, and arrays or pictures for its inputs`);
  }, first.name);
}

for (const chooser of [find("#file"), find("#tokenizer-file")]) {
  chooser.onchange = ({ target }) => {
    const files = [...target.files];
    target.value = ""; // so that the same file can be chosen again
    if (files.length > 0) openFiles(files);
  };
}
find("#digit").onclick = () => attempt(() => open("digits.pte", "digits.pte"), "digits.pte");
find("#story").onclick = () => attempt(async () => {
  await open("story.pte", "story.pte", { tokenizer: "tokenizer.json" });
  await write();
}, "story.pte");
find("#run").onclick = () => attempt(run);
find("#write").onclick = () => attempt(write);
find("#stop").onclick = stop;
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("over");
});
addEventListener("dragleave", () => document.body.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  if (event.dataTransfer.files.length > 0) openFiles([...event.dataTransfer.files], event.target);
});
addEventListener("resize", () => method && drawMemory(method.info));

await attempt(async () => {
  const runtime = await defaultRuntime();
  find("#about").textContent += ` ${runtime.kernelCount} operators, ${runtime.backends.at(-1)}.`;
  const wanted = new URLSearchParams(location.search).get("open");
  if (wanted !== null) await attempt(() => open(wanted, wanted.split("/").pop()), wanted.split("/").pop());
});
