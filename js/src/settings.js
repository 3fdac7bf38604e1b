/** Objects of settings that a call takes, such as `{memoryLimit}`: names that it does not know are errors. */

import { errorOf, show } from "./errors.js";

/** Number of letters to insert, delete, replace or swap with the next one to make one word of another. */
function distance(a, b) {
  const rows = [Array.from({ length: b.length + 1 }, (_, i) => i)];
  for (let i = 1; i <= a.length; i++) {
    rows.push([i]);
    for (let k = 1; k <= b.length; k++) {
      let least = Math.min(rows[i - 1][k] + 1, rows[i][k - 1] + 1, rows[i - 1][k - 1] + (a[i - 1] === b[k - 1] ? 0 : 1));
      if (i > 1 && k > 1 && a[i - 1] === b[k - 2] && a[i - 2] === b[k - 1]) least = Math.min(least, rows[i - 2][k - 2] + 1);
      rows[i].push(least);
    }
  }
  return rows[a.length][b.length];
}

/** `settings`, of which each must have one of the `names`. `call` is who takes them; none are an empty object. */
export function settingsOf(settings, names, call) {
  if (settings === undefined) return {};
  if (typeof settings !== "object" || settings === null || Array.isArray(settings)) {
    throw errorOf("InvalidType", `${call} takes settings as an object, {${names.join(", ")}}, not ${show(settings)}`);
  }
  for (const name of Object.keys(settings)) {
    if (names.includes(name)) continue;
    const plain = name.toLowerCase().replaceAll("_", "");
    const near = names.map((known) => [distance(plain, known.toLowerCase()), known]).sort(([a], [b]) => a - b)[0];
    const hint = near[0] <= 1 + name.length / 4 ? `did you mean '${near[1]}'?` : `there are: ${names.join(", ")}`;
    throw errorOf("InvalidArgument", `${call} has no setting '${name}'; ${hint}`, { subject: name });
  }
  return settings;
}
