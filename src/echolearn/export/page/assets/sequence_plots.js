/* The pictures of a series and a model's answers to it. All share the box of time, so that steps stand above each other. */
"use strict";
(() => {
  const { drawing, ui } = globalThis.echolearn;
  const { number, percent } = ui;
  const SHOWN = 24; // classes in a picture of rows

  let longest = 0; // pixels of the longest name beside a row

  /** Make room for these names beside the pictures. */
  function makeRoom(names) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = "12px system-ui, sans-serif";
    longest = Math.max(...names.map((name) => context.measureText(name.slice(0, 40)).width));
  }

  /** The part of a canvas in which time runs. */
  const timeBox = (width, height, top = 8, bottom = 24) => {
    const left = Math.max(46, Math.min(longest + 12, 0.24 * width));
    return { x: left, y: top, width: width - left - 14, height: height - top - bottom };
  };

  function cut(context, text, room) {
    if (context.measureText(text).width <= room) return text;
    let n = text.length;
    while (n > 1 && context.measureText(`${text.slice(0, n)}…`).width > room) n--;
    return `${text.slice(0, n)}…`;
  }

  function cursor(context, box, at, steps, of) {
    if (at === null) return;
    const x = box.x + ((at + 0.5) / steps) * box.width;
    context.strokeStyle = of.ink;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath(); context.moveTo(x, box.y); context.lineTo(x, box.y + box.height); context.stroke();
    context.setLineDash([]);
  }

  /** Names beside rows of equal height, as many as there is room for. */
  function rowNames(context, box, names, of) {
    const height = box.height / names.length, every = Math.ceil(13 / height);
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = of.muted;
    context.textAlign = "right";
    context.textBaseline = "middle";
    names.forEach((name, k) => { if (k % every === 0) context.fillText(cut(context, name, box.x - 8), box.x - 6, box.y + (k + 0.5) * height); });
  }

  const timeAxis = (context, box, steps, of) => drawing.axes(context, box, { x: [0, steps], xLabel: "" }, of);

  /** Few inputs as lines, each in a strip and a range of its own; many as colours. */
  function drawInputs(context, width, height, of, { X, steps, names, scale, at }) {
    const box = timeBox(width, height), n = names.length;
    if (n > 8) {
      const Z = new Float64Array(n * steps);
      for (let t = 0; t < steps; t++) for (let k = 0; k < n; k++) Z[k * steps + t] = (X[t * n + k] - scale.mean[k]) / scale.scale[k];
      drawing.heat(context, Z, n, steps, box, { low: -3, high: 3 });
      rowNames(context, box, names, of);
    } else {
      const strip = box.height / n;
      names.forEach((name, k) => {
        const own = { x: box.x, y: box.y + k * strip + 3, width: box.width, height: strip - 8 };
        const column = X.filter((_, i) => i % n === k), range = drawing.rangeOf(column);
        context.strokeStyle = of.line;
        context.lineWidth = 1;
        context.beginPath(); context.moveTo(own.x, own.y + own.height + 2.5); context.lineTo(own.x + own.width, own.y + own.height + 2.5); context.stroke();
        drawing.line(context, own, column, { range, span: [-0.5, steps - 0.5], colour: of.series[k % 8], width: 1.5 });
        context.font = "12px system-ui, sans-serif";
        context.textAlign = "right";
        context.fillStyle = of.muted;
        context.textBaseline = "top"; context.fillText(number(range[1]), box.x - 6, own.y);
        context.textBaseline = "bottom"; context.fillText(number(range[0]), box.x - 6, own.y + own.height + 2);
      });
    }
    timeAxis(context, box, steps, of);
    cursor(context, box, at, steps, of);
  }

  /** Return which classes are shown by name: all of a few, of many those that matter, in their order. */
  function shownClasses(answers, steps, outputs) {
    const largest = new Float64Array(outputs);
    for (let t = 0; t < steps; t++) for (let k = 0; k < outputs; k++) largest[k] = Math.max(largest[k], answers[t * outputs + k]);
    const order = Array.from(largest.keys()).sort((a, b) => largest[b] - largest[a]);
    return order.slice(0, SHOWN).filter((k, i) => i < 8 || largest[k] >= 0.05).sort((a, b) => a - b);
  }

  /** Probabilities of a few classes as bands that fill the height, with the true classes as a strip above. */
  function drawBands(context, box, { answers, steps, outputs, truth, names }, of) {
    const strip = truth ? 20 : 0, own = { ...box, y: box.y + strip, height: box.height - strip };
    const dx = own.width / steps, sum = new Float64Array(steps).fill(1);
    for (let k = outputs - 1; k >= 0; k--) { // each band covers those below it, so that no line shows between them
      context.fillStyle = of.series[k % 8];
      context.beginPath();
      context.moveTo(own.x, own.y + own.height);
      for (let t = 0; t < steps; t++) {
        const y = own.y + own.height * (1 - sum[t]);
        context.lineTo(own.x + t * dx, y);
        context.lineTo(own.x + (t + 1) * dx, y);
        sum[t] = Math.max(0, sum[t] - answers[t * outputs + k]);
      }
      context.lineTo(own.x + own.width, own.y + own.height);
      context.fill();
    }
    if (truth) {
      for (let t = 0; t < steps; t++) {
        const k = names.indexOf(truth[t]);
        context.fillStyle = k < 0 ? of.line : of.series[k % 8];
        context.fillRect(box.x + t * dx, box.y, dx + 0.5, 10);
      }
    }
    drawing.axes(context, own, { y: [0, 1], format: percent, grid: false }, of);
    if (truth) {
      context.textAlign = "right"; context.textBaseline = "middle"; context.fillStyle = of.muted;
      context.fillText("true", box.x - 6, box.y + 5);
    }
  }

  function drawAnswers(context, width, height, of, shown) {
    const { model, answers, steps, names, at, range, truth } = shown, outputs = model.outputs, box = timeBox(width, height);
    if (model.kind === "values") {
      drawing.axes(context, box, { y: range }, of);
      if (truth) drawing.line(context, box, truth.map(Number), { range, span: [-0.5, steps - 0.5], colour: of.ink, width: 1, dash: [2, 3] });
      for (let k = 0; k < Math.min(outputs, 8); k++) drawing.line(context, box, answers, { range, span: [-0.5, steps - 0.5], colour: of.series[k], offset: k, stride: outputs });
    } else if (model.kind === "independent" || outputs > 8) {
      const rows = shownClasses(answers, steps, outputs), P = new Float64Array(rows.length * steps);
      rows.forEach((k, r) => { for (let t = 0; t < steps; t++) P[r * steps + t] = answers[t * outputs + k]; });
      drawing.heat(context, P, rows.length, steps, box, { low: 0, high: 1, map: drawing.sequential() });
      rowNames(context, box, rows.map((k) => names[k]), of);
    } else {
      drawBands(context, box, { ...shown, outputs }, of);
    }
    timeAxis(context, box, steps, of);
    cursor(context, box, at, steps, of);
  }

  /** Return the units of all layers, the top layer first and in each the fast units first: [{layer, unit, leak}]. */
  function unitOrder(model) {
    const order = [];
    [...model.layers.keys()].reverse().forEach((i) => {
      const { leak } = model.layers[i];
      Array.from(leak.keys()).sort((a, b) => leak[b] - leak[a]).forEach((unit) => order.push({ layer: i, unit, leak: leak[unit] }));
    });
    return order;
  }

  /** Return the states as rows of units (units, steps), and the range of their colours. */
  function unitRows(model, states, steps) {
    const order = unitOrder(model), rows = new Float64Array(order.length * steps), sizes = [];
    order.forEach(({ layer, unit }, r) => {
      const N = model.layers[layer].units, H = states[layer];
      for (let t = 0; t < steps; t++) rows[r * steps + t] = H[t * N + unit];
    });
    for (let i = 0; i < rows.length; i += Math.ceil(rows.length / 4000)) sizes.push(Math.abs(rows[i]));
    sizes.sort((a, b) => a - b);
    return { rows, order, limit: sizes[Math.floor(0.98 * (sizes.length - 1))] || 1 };
  }

  function drawUnits(context, width, height, of, { units, steps, at }) {
    const box = timeBox(width, height), { rows, order, limit } = units;
    drawing.heat(context, rows, order.length, steps, box, { low: -limit, high: limit });
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = of.muted;
    context.textAlign = "right";
    const layers = [...new Set(order.map(({ layer }) => layer))];
    layers.forEach((layer, i) => {
      const top = box.y + (box.height * i) / layers.length, bottom = box.y + (box.height * (i + 1)) / layers.length;
      if (i) { context.strokeStyle = of.card; context.lineWidth = 2; context.beginPath(); context.moveTo(box.x, top); context.lineTo(box.x + box.width, top); context.stroke(); }
      if (bottom - top < 28) return; // no room for both words
      context.textBaseline = "top"; context.fillText("fast", box.x - 6, top);
      context.textBaseline = "bottom"; context.fillText("slow", box.x - 6, bottom);
    });
    timeAxis(context, box, steps, of);
    cursor(context, box, at, steps, of);
  }

  /** How much each step's answer changes without an input: (inputs, steps) as colours. */
  function drawEffects(context, width, height, of, { effects, steps, names, at }) {
    const box = timeBox(width, height), largest = effects.reduce((a, b) => Math.max(a, b), 0) || 1;
    drawing.heat(context, effects, names.length, steps, box, { low: 0, high: largest, map: drawing.sequential() });
    rowNames(context, box, names, of);
    timeAxis(context, box, steps, of);
    cursor(context, box, at, steps, of);
  }

  globalThis.echolearn.sequencePlots = { makeRoom, timeBox, drawInputs, drawAnswers, drawUnits, drawEffects, unitRows, unitOrder, shownClasses, cut };
})();
