/* The card in which a person enters a series: paste, drop, choose a file, or take an example.

   echolearn.ui.entry({model, title, example, use, truth}) -> {root, load(text), example()}
     use({X, steps, truth, notes}): called with every series that can be read.
   echolearn.trainingScale(model) -> {mean, scale}: of every input, as far as the model knows them. */
"use strict";
(() => {
  const { make, card, button, message, featureNames, unique } = globalThis.echolearn.ui;
  const LARGEST = 20e6; // bytes of a file

  /** Return the mean and deviation of every input in training; 0 and 1 where the model does not know them. */
  function trainingScale(model) {
    const n = model.inputs, mean = new Float64Array(n), scale = new Float64Array(n).fill(1);
    for (const operation of model.operations) {
      if (operation.kind === "project" || operation.kind === "clip") break;
      if (operation.kind === "fill") mean.set(operation.values.subarray(0, n));
      else {
        mean.set(operation.mean.subarray(0, n));
        scale.set(operation.scale.subarray(0, n));
        break;
      }
    }
    return { mean, scale };
  }

  /** Return a smooth random series in the range of the training data: noise through a slow filter, for every input. */
  function randomSeries(model, steps, seed) {
    const { mean, scale } = trainingScale(model), n = model.inputs, X = new Float64Array(steps * n);
    let state = seed >>> 0 || 1;
    const uniform = () => { // xorshift: the same example for the same seed
      state ^= state << 13; state >>>= 0; state ^= state >>> 17; state ^= state << 5; state >>>= 0;
      return state / 4294967296;
    };
    const normal = () => Math.sqrt(-2 * Math.log(uniform() || 1e-12)) * Math.cos(2 * Math.PI * uniform());
    for (let k = 0; k < n; k++) {
      const keep = 0.6 + 0.35 * uniform();
      let v = normal();
      for (let t = 0; t < steps; t++) {
        v = keep * v + Math.sqrt(1 - keep * keep) * normal();
        X[t * n + k] = mean[k] + scale[k] * v;
      }
    }
    return X;
  }

  function asText(X, names, steps) {
    const n = names.length, quoted = (name) => (/[",;\s]/.test(name) ? `"${name.replace(/"/g, '""')}"` : name);
    const rows = [names.map(quoted).join(",")];
    for (let t = 0; t < steps; t++) rows.push(Array.from(X.subarray(t * n, (t + 1) * n), (v) => Number(v.toPrecision(6))).join(","));
    return rows.join("\n");
  }

  function entry({ model, use, truth = true, steps = 200, note }) {
    const names = featureNames(model), gaps = model.operations.some((o) => o.kind === "fill");
    const options = { inputs: model.inputs, names, gaps, truth };
    const area = make("textarea", { id: unique("text"), spellcheck: false, autocomplete: "off", "aria-label": "The series as text: one step per line, one column per input" });
    const file = make("input", { type: "file", accept: ".csv,.tsv,.txt,text/*", hidden: true, "aria-label": "Choose a CSV file" });
    let seed = 1;
    const box = make("div", { class: "drop" });
    const tell = message(box);

    function load(text) {
      try {
        const table = globalThis.echolearn.readTable(text, options);
        if (model.summary && table.steps <= model.summary.washout) {
          throw new Error(`The series has ${table.steps} steps; this model leaves out the first ${model.summary.washout} and needs more.`);
        }
        tell(table.notes.join(" "));
        area.removeAttribute("aria-invalid");
        use(table);
      } catch (problem) {
        tell(problem.message, "error");
        area.setAttribute("aria-invalid", "true");
      }
    }

    async function take(chosen) {
      if (!chosen) return;
      if (chosen.size > LARGEST) { tell(`${chosen.name} has ${(chosen.size / 1e6).toFixed(0)} MB; the page reads files of up to 20 MB. Keep only some of its rows.`, "error"); return; }
      area.value = await chosen.text();
      load(area.value);
    }

    function example() {
      const given = model.extra.example;
      area.value = given && seed === 1 ? given : asText(randomSeries(model, Math.max(steps, model.summary ? 2 * model.summary.washout : 0), seed), names, steps);
      seed++;
      load(area.value);
    }

    file.addEventListener("change", () => { take(file.files[0]); file.value = ""; });
    for (const kind of ["dragenter", "dragover"]) document.addEventListener(kind, (event) => { event.preventDefault(); box.classList.add("over"); });
    document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) box.classList.remove("over"); });
    document.addEventListener("drop", (event) => { event.preventDefault(); box.classList.remove("over"); take(event.dataTransfer.files[0]); });
    area.addEventListener("paste", () => setTimeout(() => load(area.value)));
    area.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) load(area.value); });
    const listed = names.length <= 12 ? names.join(", ") : `${names.slice(0, 8).join(", ")} and ${names.length - 8} more`;
    box.append(
      make("div", { class: "row" },
        button("Show answers", () => load(area.value), { class: "main" }),
        button("Choose a file …", () => file.click()), file,
        button("Another example", example)),
      area);
    const root = card("Your series", note || `Paste lines or drop a CSV file: one step per line, ${names.length === 1 ? "one column" : `${names.length} columns`} (${listed}). One further column may hold the true answers.`, box);
    return { root, load, example, area };
  }

  Object.assign(globalThis.echolearn, { trainingScale, randomSeries });
  globalThis.echolearn.ui.entry = entry;
})();
