/** Options of the backends that a method uses, as their schemas say: shown with what they mean, checked by the library. */

import { choice, element, parsed } from "./dom.js";

/** A field for one key: `value()` is undefined as long as it says nothing. */
function fieldOf(option, id) {
  const { type, choices, minimum } = option;
  const told = { id, disabled: option.readOnly, "aria-describedby": `${id}-help` };
  if (type === "bool") {
    const select = choice(option.key, ["", "true", "false"], told);
    return { field: select, value: () => (select.value === "" ? undefined : select.value === "true") };
  }
  if (choices !== undefined) {
    const values = choices.map((name, i) => [type === "int" ? String(Number(minimum) + i) : name, name]);
    const select = element("select", { ...told, "aria-label": option.key }, element("option", { value: "", textContent: "" }));
    select.append(...values.map(([value, textContent]) => element("option", { value, textContent })));
    return { field: select, value: () => (select.value === "" ? undefined : type === "int" ? Number(select.value) : select.value) };
  }
  const text = element("input", { ...told, type: "text", size: 8, "aria-label": option.key });
  // what is no number goes to the library as it is, which says what it wants
  return { field: text, value: () => (text.value === "" ? undefined : type === "int" ? (parsed(text.value) ?? text.value) : text.value) };
}

/** A value by its name, where it has one. */
function wordOf({ type, minimum, choices }, value) {
  if (value === "") return "empty";
  return choices !== undefined && type === "int" ? choices[Number(value) - Number(minimum)] : String(value);
}

function rangeOf(option) {
  const { type, minimum, maximum, choices } = option;
  const range = minimum !== undefined && choices === undefined ? `, ${minimum} to ${maximum}` : "";
  return `${type}${range}; ${wordOf(option, option.default)} unless said`;
}

/**
 * Shows the options of backends in `list`: a function that gives those that are set, `{backend: {key: value}}`, and `explain`,
 * which says what a loaded method makes of them. `changed` is called when a field changes.
 */
export function showOptions(list, runtime, backends, changed) {
  const fields = [];
  const rows = backends.flatMap((backend, at) =>
    runtime.optionSchema(backend).filter(({ scope, readOnly }) => scope !== "process" && !readOnly).map((option, i) => {
      const id = `option-${at}-${i}`;
      const { field, value } = fieldOf(option, id);
      field.onchange = () => changed();
      const origin = element("span", { className: "origin" });
      fields.push({ backend, option, value, origin });
      const help = element("p", { className: "note", id: `${id}-help`, textContent: `${option.help} (${rangeOf(option)})` });
      return element("div", { className: "option" }, element("label", { for: id, textContent: option.key }), field, origin, help);
    }),
  );
  list.replaceChildren(...rows);
  const given = () => {
    const options = {};
    for (const { backend, option, value } of fields) {
      const set = value();
      if (set !== undefined) (options[backend] ??= {})[option.key] = set;
    }
    return options;
  };
  const explain = (method) => {
    for (const { backend, option, origin } of fields) {
      const { value, origin: from } = method.explainOption(backend, option.key);
      origin.textContent = `is ${wordOf(option, value)}${from === "default" ? "" : `, by the ${from}`}`;
    }
  };
  return { count: rows.length, given, explain };
}
