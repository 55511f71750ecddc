/* Which inputs mattered: the answer is computed again with one input held at its mean, and compared.

   echolearn.occlude(model, X, answers, done, finished) -> cancel()
     done(k, {mean, perStep}) after each input; between two inputs the page may do other work. */
"use strict";
(() => {
  /** Return the distance of two answers: of probabilities the share that moves, of values in standard deviations. */
  function distance(model, a, b, at) {
    let sum = 0;
    const n = model.outputs;
    for (let k = 0; k < n; k++) {
      const d = a[at + k] - b[at + k];
      sum += model.kind === "values" ? (d / model.answer.scale[k]) ** 2 : Math.abs(d);
    }
    if (model.kind === "values") return Math.sqrt(sum / n);
    return model.kind === "independent" ? sum / n : sum / 2;
  }

  function effectOf(model, X, answers, k, mean) {
    const held = Float64Array.from(X), n = model.inputs;
    for (let i = k; i < held.length; i += n) held[i] = mean;
    const other = model.run(held).answers, rows = other.length / model.outputs, perStep = new Float64Array(rows);
    let sum = 0;
    for (let t = 0; t < rows; t++) sum += perStep[t] = distance(model, answers, other, t * model.outputs);
    return { mean: sum / rows, perStep };
  }

  /** The mean of an input in training, or of this series where the model does not know it. */
  function meanOf(model, X, k) {
    const knows = model.operations.some((o) => o.kind === "fill" || o.kind === "standardize");
    if (knows && model.operations[0].kind !== "project") return globalThis.echolearn.trainingScale(model).mean[k];
    let sum = 0, count = 0;
    for (let i = k; i < X.length; i += model.inputs) if (!Number.isNaN(X[i])) { sum += X[i]; count++; }
    return count ? sum / count : 0;
  }

  function occlude(model, X, answers, done, finished = () => {}) {
    let k = 0, waiting = null;
    const work = () => {
      const until = performance.now() + 25;
      while (k < model.inputs && performance.now() < until) {
        done(k, effectOf(model, X, answers, k, meanOf(model, X, k)));
        k++;
      }
      if (k < model.inputs) waiting = setTimeout(work);
      else finished();
    };
    waiting = setTimeout(work);
    return () => clearTimeout(waiting);
  }

  Object.assign(globalThis.echolearn, { occlude, answerDistance: distance });
})();
