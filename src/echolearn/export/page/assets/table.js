/* Numbers out of pasted or dropped text.

   echolearn.readTable(text, {inputs, names, gaps, truth}) -> {X, steps, truth, notes}
     X: Float64Array (steps * inputs); truth: array of texts or null; notes: sentences about what was done.
     gaps: whether the model takes empty cells. truth: whether one more column may hold the true answers, or the classes
     that all cells of such a column name.
   Throws an Error with one plain sentence where the text cannot be what the model takes. */
"use strict";
(() => {
  const MOST = 20000; // rows
  const GAP = /^(|nan|na|n\/a|null|none|\?|-)$/i;
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const COUNTER = /^(|#|index|id|t|time|step|date|timestamp|unnamed: 0)$/i;

  const shown = (cell) => `“${cell.length > 30 ? `${cell.slice(0, 30)}…` : cell}”`;
  const columns = (n) => `${n} column${n === 1 ? "" : "s"}`;

  /** Split one line at a separator; quotes protect it. */
  function cells(line, separator) {
    if (!line.includes('"')) return (separator === " " ? line.trim().split(/\s+/) : line.split(separator)).map((c) => c.trim());
    const out = [];
    let cell = "", quoted = false;
    for (let i = 0; i < line.length; i++) {
      const c = line[i];
      if (c === '"' && quoted && line[i + 1] === '"') { cell += '"'; i++; }
      else if (c === '"') quoted = !quoted;
      else if (!quoted && (c === separator || (separator === " " && /\s/.test(c)))) { out.push(cell.trim()); cell = ""; }
      else cell += c;
    }
    out.push(cell.trim());
    return separator === " " ? out.filter((c) => c !== "") : out;
  }

  /** Return the separator of these lines: the first of tab, semicolon, comma and space that the second line has. */
  function separatorOf(lines, inputs) {
    const line = lines[Math.min(1, lines.length - 1)];
    const found = ["\t", ";"].find((s) => line.includes(s));
    if (found) return found;
    const body = lines.slice(lines.length > 1 && /[a-z]/i.test(lines[0]) ? 1 : 0);
    const commaIsPoint = body.every((l) => l.trim().split(/\s+/).every((c) => /^[+-]?\d+(,\d+)?$/.test(c))) && body.some((l) => l.includes(","));
    if (commaIsPoint && body[0].trim().split(/\s+/).length === inputs && body.some((l) => l.split(",").length !== inputs)) return " ";
    return line.includes(",") ? "," : /\S\s+\S/.test(line) ? " " : ",";
  }

  const isNumber = (cell, point) => NUMBER.test(point === "," ? cell.replace(",", ".") : cell);
  const toNumber = (cell, point) => (GAP.test(cell) ? NaN : Number(point === "," ? cell.replace(",", ".") : cell));

  /** Return which columns hold the inputs, in their order, and which the truth. */
  function choose(header, rows, { inputs, names, truth }, notes) {
    const width = rows[0].length, known = names.filter((name) => !/^input \d+$/.test(name));
    const all = Array.from({ length: width }, (_, k) => k), classes = Array.isArray(truth) ? truth : null;
    const fits = (k) => !classes || rows.every((row) => GAP.test(row[k]) || classes.includes(row[k]));
    if (header && known.length === inputs && names.every((name) => header.includes(name))) {
      const found = names.map((name) => header.indexOf(name)), rest = all.filter((k) => !found.includes(k) && !COUNTER.test(header[k]));
      const fitting = rest.filter(fits), answers = truth && fitting.length === 1 && (classes || rest.length === 1) ? fitting[0] : null;
      const unused = rest.filter((k) => k !== answers);
      if (answers !== null) notes.push(`The column ${shown(header[answers])} is taken as the true answers.`);
      if (unused.length) notes.push(`Not used: ${unused.map((k) => shown(header[k])).join(", ")}.`);
      return { found, answers };
    }
    let found = all;
    if (width > inputs && header && COUNTER.test(header[0]) && (width === inputs + 1 || (truth && width === inputs + 2))) {
      found = all.slice(1);
      notes.push(`The first column (${header[0] ? shown(header[0]) : "without a name"}) is left out.`);
    }
    if (truth && found.length === inputs + 1) {
      const last = found[inputs], used = fits(last);
      notes.push(`The last column${header ? ` (${shown(header[last])})` : ""} is ${used ? "taken as the true answers" : "not used: not all of its entries are classes of the model"}.`);
      return { found: found.slice(0, inputs), answers: used ? last : null };
    }
    if (found.length !== inputs) {
      const wanted = known.length && inputs <= 12 ? `: ${known.join(", ")}` : "";
      throw new Error(`The text has ${columns(width)}; this model takes ${inputs}${wanted}. Put one step on each line${inputs > 1 ? ", one column for each input" : ""}.`);
    }
    if (header && known.length && found.some((k, i) => header[k] !== names[i])) {
      notes.push("The names of the columns are not those of the model; they are taken in the order in which they stand.");
    }
    return { found, answers: null };
  }

  function readTable(text, { inputs, names, gaps = false, truth = true }) {
    const notes = [];
    if (text.includes("\u0000")) throw new Error("This is not a text file. Save the table as CSV first.");
    let lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/).map((l) => l.replace(/\s+$/, "")).filter((l) => l !== "" && !/^\s*#/.test(l));
    if (!lines.length) throw new Error("There is nothing here yet. Paste some lines, or drop a CSV file.");
    if (inputs === 1 && lines.length === 1) { // a series in one line
      const separated = lines[0].split(/[;,\t ]+/).filter(Boolean);
      if (separated.length > 2) { lines = separated; notes.push("One line is taken as one series."); }
    }
    const separator = separatorOf(lines, inputs);
    const table = lines.map((line) => cells(line, separator));
    const point = separator !== "," && table.some((row) => row.some((cell) => /^[+-]?\d*,\d+(e[+-]?\d+)?$/i.test(cell))) ? "," : ".";
    if (point === ",") notes.push("Commas are taken as decimal points.");
    const header = table[0].some((cell) => !GAP.test(cell)) && table[0].every((cell) => !isNumber(cell, point)) ? table.shift() : null;
    if (!table.length) throw new Error("There is only one line, and it holds names. Add the numbers below it.");
    const first = header ? 2 : 1, width = (header || table[0]).length;
    const ragged = table.findIndex((row) => row.length !== width);
    if (ragged >= 0) throw new Error(`Line ${ragged + first} has ${columns(table[ragged].length)}; ${header ? "the first line has" : "the lines before it have"} ${width}.`);
    const { found, answers } = choose(header, table, { inputs, names, truth }, notes);
    const steps = Math.min(table.length, MOST), X = new Float64Array(steps * inputs);
    if (table.length > MOST) notes.push(`Only the first ${MOST.toLocaleString("en")} of ${table.length.toLocaleString("en")} steps are shown.`);
    let missing = 0;
    for (let t = 0; t < steps; t++) {
      for (let k = 0; k < inputs; k++) {
        const cell = table[t][found[k]], where = `Line ${t + first}, column ${found[k] + 1} (${names[k]})`;
        if (!GAP.test(cell) && !isNumber(cell, point)) throw new Error(`${where} says ${shown(cell)}, which is not a number.`);
        X[t * inputs + k] = toNumber(cell, point);
        if (GAP.test(cell)) {
          missing++;
          if (!gaps) throw new Error(`${where} is empty, and this model does not take gaps: it was fitted with missing="error". Fill the gap, or fit the model with missing="carry".`);
        }
      }
    }
    if (missing) notes.push(`${missing} gap${missing === 1 ? "" : "s"} filled as the model does it.`);
    return { X, steps, truth: answers === null ? null : table.slice(0, steps).map((row) => row[answers]), notes };
  }

  Object.assign(globalThis.echolearn, { readTable });
})();
