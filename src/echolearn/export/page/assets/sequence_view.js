/* The view of classifiers and regressors: a series, the answers to it, the units behind them, and the inputs that mattered.
   Two models are shown side by side. */
"use strict";
(() => {
  const { ui, drawing, sequencePlots: plots } = globalThis.echolearn;
  const { make, card, number, percent } = ui;

  /** Return the place of the largest of the numbers values[at ... at + n]. */
  function best(values, at, n) {
    let k = 0;
    for (let i = 1; i < n; i++) if (values[at + i] > values[at + k]) k = i;
    return k;
  }

  /** Return what a model says at one row of its answers, in words. */
  function inWords(model, names, answers, row) {
    const n = model.outputs, at = row * n;
    if (model.kind === "values") return names.slice(0, 8).map((name, k) => `${n > 1 ? `${name} ` : ""}${number(answers[at + k])}`).join(", ");
    if (model.kind === "independent") {
      const held = names.filter((_, k) => answers[at + k] > 0.5);
      return held.length ? held.join(", ") : "none of the labels";
    }
    const k = best(answers, at, n);
    return `${names[k]} (${percent(answers[at + k])})`;
  }

  /** Return the share of rows with a true answer in which it is given, or null where there is none. */
  function agreement(model, names, answers, truth) {
    if (!truth || !["softmax", "nearest"].includes(model.kind)) return null;
    const wanted = model.perStep ? truth : truth.slice(-1);
    let right = 0, known = 0;
    wanted.forEach((label, t) => {
      known += names.includes(label); // a gap is not counted
      right += names[best(answers, t * model.outputs, model.outputs)] === label;
    });
    return known ? right / known : null;
  }

  /** A sentence about all answers of a model. */
  function conclusion(model, names, { answers, rows, steps }, truth) {
    if (!model.perStep) {
      const right = agreement(model, names, answers, truth), verdict = right ? "; this is right" : `; the true answer is ${truth && truth[truth.length - 1]}`;
      return [make("b", {}, inWords(model, names, answers, 0)), ` for the whole sequence of ${steps} steps`, right === null ? "" : verdict];
    }
    if (model.kind === "values" || model.kind === "independent") return ["At the last step: ", make("b", {}, inWords(model, names, answers, rows - 1))];
    const count = new Map();
    for (let t = 0; t < rows; t++) { const k = best(answers, t * model.outputs, model.outputs); count.set(k, (count.get(k) || 0) + 1); }
    const [k, most] = [...count].sort((a, b) => b[1] - a[1])[0], right = agreement(model, names, answers, truth);
    return ["Most often ", make("b", {}, names[k]), ` (${percent(most / rows)} of ${rows} steps)`, right === null ? "" : `; right at ${percent(right)} of ${truth.every((label) => names.includes(label)) ? "them" : "those with a true answer"}`];
  }

  /** The answer to a whole sequence as a table of bars. */
  function answerTable(model, names, answers) {
    const order = Array.from(names.keys());
    if (model.kind !== "values") order.sort((a, b) => answers[b] - answers[a]);
    const bar = (k) => { const amount = make("span", { class: "amount" }); amount.style.width = `${100 * answers[k]}%`; return amount; };
    return make("div", { class: "scroll" }, make("table", {}, make("tbody", {}, order.slice(0, 10).map((k) => make("tr", {},
      make("td", {}, names[k]),
      model.kind === "values" ? null : make("td", { class: "bars" }, bar(k)),
      make("td", { class: "n" }, model.kind === "values" ? number(answers[k]) : percent(answers[k])))))));
  }

  /** A canvas over time: pointer and arrow keys move the common cursor. */
  function timeCanvas(options, shared) {
    const canvas = drawing.canvas({ ...options, focusable: true });
    canvas.element.setAttribute("role", "img");
    canvas.element.setAttribute("aria-roledescription", "picture; arrow keys move through time");
    canvas.element.classList.add("time");
    const at = (event) => {
      const box = plots.timeBox(canvas.width, canvas.height), x = event.clientX - canvas.element.getBoundingClientRect().left;
      return Math.floor(((x - box.x) / box.width) * shared.steps);
    };
    canvas.element.addEventListener("pointermove", (event) => shared.move(at(event)));
    canvas.element.addEventListener("pointerdown", (event) => shared.move(at(event)));
    canvas.element.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      const to = { Home: 0, End: shared.steps - 1 }[event.key];
      if (by === undefined && to === undefined) return;
      event.preventDefault();
      shared.move(to === undefined ? (shared.at === null ? 0 : shared.at) + by * (event.shiftKey ? 10 : 1) : to);
    });
    shared.canvases.push(canvas);
    return canvas;
  }

  /** The answers of one model. */
  function answerCard(model, names, shared, beside) {
    const place = make("div"), sentence = make("p", { class: "answer" });
    const legend = model.perStep && (model.kind === "values" || (model.outputs <= 8 && model.kind !== "independent"));
    const unit = { independent: "The probability of each label", values: "The values", softmax: "Probabilities", nearest: "Probabilities" }[model.kind];
    const what = model.perStep ? `${unit} at every step${model.outputs > 8 && model.kind !== "values" ? ", of the classes that matter here" : ""}.` : "One answer for the whole sequence.";
    const root = card(beside ? `Answers of ${model.name}` : "Answers", what, sentence, place);
    let shown = null;
    if (model.perStep) {
      const canvas = timeCanvas({ height: 200, tall: (width) => (width < 520 ? 170 : 210), label: `Answers of ${model.name} over time` }, shared);
      place.append(canvas.element);
      if (legend) place.append(drawing.legend(names.slice(0, 8).map((name, k) => [name, k])));
      canvas.onDraw((context, width, height, of) => { if (shown) plots.drawAnswers(context, width, height, of, { ...shown, at: shared.at }); });
    }
    return { root, show(result, truth, range) {
      shown = { model, answers: result.answers, steps: result.steps, names, truth, range };
      sentence.replaceChildren(...conclusion(model, names, result, truth));
      if (!model.perStep) place.replaceChildren(answerTable(model, names, result.answers));
    } };
  }

  function unitCard(model, shared, beside) {
    let shown = null;
    const canvas = timeCanvas({ height: 230, label: `Hidden units of ${model.name} over time, fast ones above, slow ones below` }, shared);
    const note = make("p", { class: "note" });
    const root = card(beside ? `Hidden units of ${model.name}` : "Hidden units", null, note, canvas.element);
    canvas.onDraw((context, width, height, of) => { if (shown) plots.drawUnits(context, width, height, of, { ...shown, at: shared.at }); });
    return { root, show(result) {
      const units = plots.unitRows(model, result.states, result.steps), leaks = units.order.map(({ leak }) => leak);
      shown = { units, steps: result.steps };
      const [slow, fast] = [Math.min(...leaks), Math.max(...leaks)];
      const sort = slow === fast ? `All leaks are ${number(fast)}.` : `Fast units (leak ${number(fast)}) above, slow ones (${number(slow)}) below.`;
      const many = model.layers.length > 1 ? ` Of the ${model.layers.length} layers, the last one is above.` : "";
      note.textContent = `${sort}${many} Orange is positive, blue negative, from −${number(units.limit)} to ${number(units.limit)}.${model.layers.some((l) => l.reverse) ? " Half of the units run backwards in time." : ""}`;
    } };
  }

  /** Which inputs mattered, of all models in one table; and when, of a model with one answer per step. */
  function effectCard(models, names, shared) {
    const values = models[0].kind === "values", body = make("tbody"), pictures = make("div", { class: models.length > 1 ? "pair" : "" });
    const head = make("tr", {}, make("th", {}, "Input"), models.map((model) => make("th", { colspan: "2" }, models.length > 1 ? model.name : "Change of the answer")));
    const root = card("Which inputs mattered",
      `The answer is computed again with one input held at its mean. The bar shows how much the answer changes${values ? ", in standard deviations" : ": the share of the probability that moves"}; the picture, when.`,
      make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), body)));
    let effects = null, cancels = [];
    const canvases = models.map((model) => {
      if (!model.perStep) return null;
      const canvas = timeCanvas({ height: Math.min(260, 44 + 18 * names.length), label: `When each input mattered to ${model.name}` }, shared);
      canvas.onDraw((context, width, height, of) => {
        if (effects) plots.drawEffects(context, width, height, of, { effects: effects[models.indexOf(model)].perStep, steps: shared.steps, names, at: shared.at });
      });
      pictures.append(make("div", {}, models.length > 1 ? make("h3", {}, model.name) : null, canvas.element));
      return canvas;
    });
    if (models[0].perStep) root.append(pictures);

    function list() {
      const largest = Math.max(1e-12, ...effects.flatMap(({ mean }) => Array.from(mean)));
      const order = Array.from(names.keys()).sort((a, b) => effects[0].mean[b] - effects[0].mean[a]).slice(0, 12);
      body.replaceChildren(...order.map((k) => make("tr", {}, make("td", {}, names[k]), effects.flatMap(({ mean }) => {
        const amount = make("span", { class: "amount" });
        amount.style.width = `${(100 * mean[k]) / largest}%`;
        return [make("td", { class: models.length > 1 ? "half" : "bars" }, amount), make("td", { class: "n" }, values ? number(mean[k]) : percent(mean[k]))];
      }))));
    }

    return { root, show(X, steps, results) {
      cancels.forEach((cancel) => cancel());
      root.dataset.done = "";
      effects = models.map(() => ({ mean: new Float64Array(names.length), perStep: new Float64Array(names.length * steps) }));
      let open = models.length;
      cancels = models.map((model, i) => globalThis.echolearn.occlude(model, X, results[i].answers, (k, effect) => {
        effects[i].mean[k] = effect.mean;
        if (model.perStep) effects[i].perStep.set(effect.perStep, k * steps);
        if (names.length <= 8 || k % 8 === 7) { list(); if (canvases[i]) canvases[i].redraw(); }
      }, () => {
        list();
        if (canvases[i]) canvases[i].redraw();
        if (--open === 0) root.dataset.done = "yes";
      }));
      list();
    } };
  }

  /** A sentence about how often two models agree. */
  function comparison(models, names, results, truth) {
    const [a, b] = results, n = models[0].outputs;
    if (models[0].kind === "values") {
      let sum = 0;
      for (let t = 0; t < a.rows; t++) sum += globalThis.echolearn.answerDistance(models[0], a.answers, b.answers, t * n);
      return `Their answers differ by ${number(sum / a.rows)} standard deviations on average.`;
    }
    let same = 0;
    for (let t = 0; t < a.rows; t++) if (best(a.answers, t * n, n) === best(b.answers, t * n, n)) same++;
    const right = results.map((result, i) => agreement(models[i], names, result.answers, truth));
    const scored = right[0] === null || !models[0].perStep ? "" : ` ${models.map((model, i) => `${model.name} is right at ${percent(right[i])}`).join(", ")} of the steps.`;
    return (models[0].perStep ? `They give the same answer at ${percent(same / a.rows)} of the steps.` : same ? "They give the same answer." : "They give different answers.") + scored;
  }

  function mount(root, models) {
    const model = models[0], names = ui.outputNames(model), features = ui.featureNames(model), beside = models.length > 1;
    plots.makeRoom([...features, ...(model.outputs > 8 || model.kind === "independent" ? names : [])]);
    const shared = { at: null, steps: 0, canvases: [], move() {} };
    const pair = (cards) => (beside ? make("div", { class: "pair" }, cards) : cards);
    const status = make("p", { class: "facts", id: ui.unique("status") });
    let now = null;
    const inputs = timeCanvas({ height: 40 + Math.min(8, features.length) * 52, label: "Inputs over time" }, shared);
    inputs.onDraw((context, width, height, of) => { if (now) plots.drawInputs(context, width, height, of, { ...now, names: features, scale: globalThis.echolearn.trainingScale(model), at: shared.at }); });
    const inputCard = card("Inputs", features.length > 8 ? "Every row is one input, in standard deviations from its mean." : null, inputs.element,
      features.length > 8 ? null : drawing.legend(features.map((name, k) => [name, k])));
    const answers = models.map((m) => answerCard(m, names, shared, beside)), units = models.map((m) => unitCard(m, shared, beside));
    const effects = effectCard(models, features, shared), say = ui.announcer(root, { id: "announcement" });
    const versus = beside ? make("p", { class: "message" }) : null;

    shared.move = (to) => {
      if (!now) return;
      shared.at = Math.max(0, Math.min(now.steps - 1, to));
      const frame = features.slice(0, 4).map((name, k) => `${name} ${number(now.X[shared.at * features.length + k])}`).join(", ");
      const answers = models.map((m, i) => (m.perStep ? `${beside ? `${m.name}: ` : ""}${inWords(m, names, now.results[i].answers, shared.at)}` : "")).filter(Boolean).join("; ");
      status.textContent = `Step ${shared.at}: ${[frame + (features.length > 4 ? " …" : ""), answers].filter(Boolean).join(" → ")}`;
      say(status.textContent);
      shared.canvases.forEach((canvas) => canvas.redraw());
    };

    function use({ X, steps, truth }) {
      const began = performance.now(), results = models.map((m) => m.run(X, { keep: true }));
      now = { X, steps, results, truth };
      shared.steps = steps;
      shared.at = null;
      const range = drawing.rangeOf(results.flatMap(({ answers: a }) => Array.from(a)).concat(truth && model.kind === "values" ? truth.map(Number) : []));
      answers.forEach((one, i) => one.show(results[i], truth, range));
      units.forEach((one, i) => one.show(results[i]));
      if (versus) versus.textContent = comparison(models, names, results, truth);
      status.textContent = `${steps} steps in ${number(performance.now() - began)} ms. Move over a picture, or use its arrow keys, to read single steps.`;
      say(answers.map(({ root: one }) => `${one.querySelector("h2").textContent}: ${one.querySelector(".answer").textContent}`).join(". "));
      effects.show(X, steps, results);
      shared.canvases.forEach((canvas) => canvas.redraw());
    }

    const entry = ui.entry({ model, use, truth: ["softmax", "nearest"].includes(model.kind) ? names : true });
    root.append(entry.root, ...[versus].filter(Boolean), ...[pair(answers.map((one) => one.root))].flat(), inputCard, ...[pair(units.map((one) => one.root))].flat(), effects.root);
    entry.root.append(status);
    entry.example();
  }

  globalThis.echolearn.views.register({ name: "sequence", accepts: (model) => model.horizon === null, mount });
})();
