/** The picture of the memory plan: bytes of the planned buffers upwards, instructions to the right. */

/** Planned values with the first and the last instruction that has them as an argument. */
export function lifetimes(method) {
  const { values, instructions, inputs, outputs } = method;
  const life = new Map();
  const touch = (index, at, within = new Set()) => {
    if (within.has(index)) return; // a damaged file may have a list that is its own item
    within.add(index);
    for (const item of values[index]?.items ?? []) if (item !== null) touch(item, at, within);
    const known = life.get(index);
    life.set(index, { first: Math.min(known?.first ?? at, at), last: Math.max(known?.last ?? at, at) });
  };
  for (const { index } of inputs) touch(index, -1);
  instructions.forEach((instruction, at) => instruction.arguments.forEach((index) => touch(index, at)));
  for (const { index } of outputs) touch(index, instructions.length);
  return values
    .filter((value) => value.kind === "tensor" && value.buffer !== undefined && value.nbytes > 0 && life.has(value.index))
    .map((value) => ({
      ...value,
      ...life.get(value.index),
      role: inputs.some((v) => v.index === value.index) ? "input" : outputs.some((v) => v.index === value.index) ? "output" : "",
    }));
}

export const bytes = (n) => (n < 10000 ? `${n} B` : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`);

/** Draws it on `canvas`; what is under the pointer, or reached by arrow keys, is told in `note`, and its instructions by `light(first, last)`. */
export function drawPlan(canvas, note, method, light) {
  const blocks = lifetimes(method);
  const { buffers } = method;
  const starts = buffers.map((_, i) => buffers.slice(0, i).reduce((a, b) => a + b, 0));
  const total = buffers.reduce((a, b) => a + b, 0);
  canvas.hidden = total === 0;
  const steps = method.instructions.length + 2; // before the first, and after the last
  const scale = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = width * scale;
  canvas.height = height * scale;
  const paper = canvas.getContext("2d");
  paper.scale(scale, scale);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const [left, foot] = [56, 18];
  const x = (step) => left + ((step + 1) * (width - left)) / steps;
  const y = (byte) => (height - foot) * (1 - byte / (total || 1));

  const boxOf = ({ buffer, offset, nbytes, first, last }) => {
    const base = starts[buffer - 1] ?? 0;
    const [top, bottom] = [y(base + offset + nbytes), y(base + offset)];
    return { left: x(first), top, width: x(last + 1) - x(first), height: Math.max(bottom - top, 1) };
  };
  const draw = (lit) => {
    paper.clearRect(0, 0, width, height);
    paper.font = "11px system-ui";
    paper.fillStyle = colour("--soft");
    paper.textAlign = "right";
    for (const part of [0, 0.5, 1]) paper.fillText(bytes(Math.round(total * part)), left - 8, Math.max(y(total * part), 10));
    paper.textAlign = "left";
    paper.fillText(`${method.instructions.length} instructions →`, left, height - 4);
    for (const block of blocks) {
      const box = boxOf(block);
      const hue = block.role === "input" ? 150 : block.role === "output" ? 28 : 215 + ((block.index * 47) % 60) - 30;
      paper.fillStyle = `hsl(${hue} 60% ${block === lit ? 45 : 62}% / .85)`;
      paper.fillRect(box.left + 0.5, box.top + 0.5, Math.max(box.width - 1, 1), Math.max(box.height - 1, 0.5));
    }
  };
  const sum = blocks.reduce((a, block) => a + block.nbytes, 0);
  const nothing = method.delegates.length > 0 ? "Nothing is planned: the backend has memory of its own." : "Nothing is planned.";
  const summary = total === 0 ? nothing : `${bytes(total)} hold tensors of ${bytes(sum)}: green goes in, orange comes out.`;
  const show = (lit) => {
    draw(lit);
    note.textContent = lit
      ? `${lit.role || `value ${lit.index}`}: ${lit.dtype} [${lit.shape.join(", ")}], bytes ${lit.offset} to ${lit.offset + lit.nbytes} of buffer ${lit.buffer}`
      : summary;
    light(lit?.first ?? 0, lit?.last ?? -1);
  };
  canvas.onpointermove = ({ offsetX, offsetY }) => show(
    blocks.findLast((block) => {
      const box = boxOf(block);
      return offsetX >= box.left && offsetX <= box.left + box.width && offsetY >= box.top && offsetY <= box.top + box.height;
    }),
  );
  canvas.onpointerleave = () => show(undefined);
  let reached = -1; // by the keyboard, in the order of their lives
  const inOrder = [...blocks].sort((a, b) => a.first - b.first || a.last - b.last);
  canvas.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined || inOrder.length === 0) return;
    event.preventDefault();
    reached = Math.min(Math.max(reached + step, 0), inOrder.length - 1);
    show(inOrder[reached]);
  };
  canvas.onblur = () => show(undefined);
  show(undefined);
}
