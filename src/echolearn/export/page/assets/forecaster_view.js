/* The view of forecasters: draw the beginning of a series and watch it continue. Two models run side by side. */
"use strict";
(() => {
  const { ui, drawing, forecasterPlots: plots } = globalThis.echolearn;
  const { make, card, button, number } = ui;
  const AHEAD = 200, TRACE = 3000, FAR = 100, EDITED = 150;

  /** Return beginnings of a series by name: [name, (steps) -> X (steps * inputs)]. */
  function beginnings(model) {
    const { mean, scale } = globalThis.echolearn.trainingScale(model), n = model.inputs, dims = model.horizon;
    const fill = (f) => (steps) => {
      const X = new Float64Array(steps * n);
      for (let t = 0; t < steps; t++) for (let k = 0; k < n; k++) X[t * n + k] = k < dims ? mean[k] + scale[k] * f(t, k, steps) : mean[k];
      return X;
    };
    const own = (steps) => { // as the network itself continues its training series
      const X = fill(() => 0)(steps), values = model.forecast(new Float64Array(0), steps);
      for (let t = 0; t < steps; t++) X.set(values.subarray(t * dims, (t + 1) * dims), t * n);
      return X;
    };
    const out = [];
    const given = model.extra.example && readExample(model);
    if (given) out.push(["The example", () => given.X]);
    if (model.resumable) out.push(["What followed the training series", own]);
    out.push(["A wave", fill((t, k) => 1.2 * Math.sin(t / 6 + k))]);
    out.push(["A step", fill((t, k, steps) => (t > steps / 2 ? 1 : -1))]);
    out.push(["A flat line", fill(() => 0)]);
    return out;
  }

  const tableOptions = (model) => ({ inputs: model.inputs, names: ui.featureNames(model), gaps: false, truth: false });

  function readExample(model) {
    try { return globalThis.echolearn.readTable(model.extra.example, tableOptions(model)); } catch { return null; }
  }

  /** The canvas of the forecast: the pointer draws known values, arrow keys move and edit. */
  function forecastCanvas(view) {
    const { dims } = view;
    const canvas = drawing.canvas({ height: dims > 1 ? 90 + 90 * Math.min(dims, plots.SHOWN) : 300, tall: (w) => (dims > 1 ? 60 + (w < 520 ? 80 : 100) * Math.min(dims, plots.SHOWN) : w < 520 ? 230 : 300), focusable: true,
      label: "The series and its forecast. Left and right arrows choose a known step, up and down change its value, Page Up and Page Down choose a dimension." });
    const { element } = canvas;
    let last = null;

    function place(event) {
      const area = element.getBoundingClientRect(), x = event.clientX - area.left, y = event.clientY - area.top, span = view.span();
      let k = 0;
      for (let i = 1; i < Math.min(dims, plots.SHOWN); i++) if (y >= plots.strip(canvas.width, canvas.height, i, dims).y - 4) k = i;
      if (last) k = last.k;
      const box = plots.strip(canvas.width, canvas.height, k, dims), range = view.ranges[k];
      const share = Math.min(1, Math.max(0, 1 - (y - box.y) / box.height));
      return { k, t: Math.round(span[0] + ((x - box.x) / box.width) * (span[1] - span[0])), v: range[0] + share * (range[1] - range[0]) };
    }

    element.addEventListener("pointerdown", (event) => {
      const at = place(event);
      if (at.t < view.firstEdited() || at.t > view.known.steps + 3 || view.trace0() > 0) return;
      element.setPointerCapture(event.pointerId);
      last = at;
      view.write(at, at);
    });
    element.addEventListener("pointermove", (event) => {
      if (!last) return;
      const at = place(event);
      view.write(last, at);
      last = at;
    });
    for (const kind of ["pointerup", "pointercancel"]) element.addEventListener(kind, () => { last = null; });
    element.addEventListener("keydown", (event) => {
      const { key, shiftKey } = event, big = shiftKey ? 10 : 1;
      if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"].includes(key)) return;
      event.preventDefault();
      const cursor = view.cursor || (view.cursor = { t: view.known.steps - 1, k: 0 }), n = Math.min(dims, plots.SHOWN);
      if (key === "ArrowLeft") cursor.t -= big;
      if (key === "ArrowRight") cursor.t += big;
      if (key === "Home") cursor.t = 0;
      if (key === "End") cursor.t = view.known.steps - 1;
      if (key === "PageUp") cursor.k = (cursor.k + n - 1) % n;
      if (key === "PageDown") cursor.k = (cursor.k + 1) % n;
      cursor.t = Math.min(view.known.steps - 1, Math.max(view.firstEdited(), cursor.t));
      if (key === "ArrowUp" || key === "ArrowDown") {
        const [low, high] = view.ranges[cursor.k], at = cursor.t * view.known.inputs + cursor.k;
        const v = Math.min(high, Math.max(low, view.known.X[at] + ((key === "ArrowUp" ? 1 : -1) * big * (high - low)) / 100));
        view.write({ ...cursor, v }, { ...cursor, v });
      }
      view.say(`Step ${cursor.t}: ${number(view.known.X[cursor.t * view.known.inputs + cursor.k])}`);
      canvas.redraw();
    });
    element.addEventListener("blur", () => { view.cursor = null; canvas.redraw(); });
    return canvas;
  }

  /** The attractor of one model, flat and in space. */
  function attractorCard(loop, i, view, beside) {
    const label = `Attractor of ${loop.base.name}`, tall = (w) => Math.min(340, w);
    const flat = drawing.canvas({ height: 320, tall, label: `${label} in two dimensions` });
    const space = drawing.canvas({ height: 320, tall, label: `${label} in three dimensions. Arrow keys turn it.`, focusable: true });
    let from = null;
    space.element.classList.add("turn");
    space.element.addEventListener("pointerdown", (event) => { from = event; space.element.setPointerCapture(event.pointerId); view.turning = false; });
    space.element.addEventListener("pointermove", (event) => {
      if (!from) return;
      view.turn += (event.clientX - from.clientX) / 120;
      view.tilt = Math.max(-1.5, Math.min(1.5, view.tilt + (event.clientY - from.clientY) / 120));
      from = event;
      view.redrawAttractors();
    });
    for (const kind of ["pointerup", "pointercancel"]) space.element.addEventListener(kind, () => { from = null; });
    space.element.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [-0.12, 0], ArrowRight: [0.12, 0], ArrowUp: [0, -0.12], ArrowDown: [0, 0.12] }[event.key];
      if (!by) return;
      event.preventDefault();
      view.turning = false;
      view.turn += by[0];
      view.tilt = Math.max(-1.5, Math.min(1.5, view.tilt + by[1]));
      view.redrawAttractors();
    });
    const shown = () => ({ trace: view.traces[i], dims: loop.dims, point: plots.makePoint(loop.base, view.delay), colour: i, turn: view.turn, tilt: view.tilt });
    flat.onDraw((context, w, h, of) => plots.draw2d(context, w, h, of, shown()));
    space.onDraw((context, w, h, of) => plots.draw3d(context, w, h, of, shown()));
    const note = loop.dims >= 3 ? "The first three values of the series, in standard deviations." : "Each step against earlier ones, in standard deviations: a delay embedding.";
    return { root: card(beside ? label : "Attractor", `${note} Drag the picture in space, or use its arrow keys, to turn it.`, make("div", { class: "pair bare" }, flat.element, space.element)),
      redraw() { flat.redraw(); space.redraw(); } };
  }

  /** What a view knows and does; elements are made in `mount`. */
  function makeView(models) {
    const model = models[0], dims = model.horizon, { mean, scale } = globalThis.echolearn.trainingScale(model);
    const view = {
      dims, loops: models.map(globalThis.echolearn.forecastLoop), known: null, futures: [], traces: models.map(() => new Float64Array(0)),
      ranges: Array.from({ length: dims }, (_, k) => [mean[k] - 3 * scale[k], mean[k] + 3 * scale[k]]), cursor: null, running: false,
      leak: 1, radius: 1, speed: 2, delay: 1, turn: 0.6, tilt: 0.35, turning: true, shown: EDITED + AHEAD, listeners: [], say() {}, tell() {},
    };
    view.firstEdited = () => Math.max(0, view.known.steps - EDITED);
    view.ahead = (i) => view.futures[i].dropped + view.futures[i].values.length / dims; // steps
    view.trace0 = () => Math.max(0, view.ahead(0) - AHEAD);
    view.span = () => { const first = view.firstEdited() + view.trace0(); return [first, first + Math.min(EDITED, view.known.steps) + AHEAD]; };
    view.redrawAttractors = () => {};
    view.redraw = () => {};

    /** Forecast from the known values; the interval follows when it is ready. */
    view.restart = () => {
      view.loops.forEach((loop, i) => {
        loop.begin(view.known.X);
        const values = loop.advance(AHEAD), interval = view.futures[i] ? view.futures[i].interval : null;
        view.futures[i] = { values, dropped: 0, interval: view.running ? null : interval };
        view.traces[i] = values;
        loop.interval(AHEAD, (bounds) => { view.futures[i].interval = bounds; view.redraw(); });
      });
      view.widen();
      view.redraw();
    };

    /** Make room for values outside the usual range, up to six deviations. */
    view.widen = () => {
      for (let k = 0; k < dims; k++) {
        const reach = (v) => Math.min(6, Math.abs(v - mean[k]) / scale[k] + 0.3);
        let far = 3;
        for (let i = k; i < view.known.X.length; i += view.known.inputs) far = Math.max(far, reach(view.known.X[i]) || 0);
        for (const { values } of view.futures) for (let i = k; i < values.length; i += dims) far = Math.max(far, reach(values[i]) || 0);
        view.ranges[k] = [mean[k] - far * scale[k], mean[k] + far * scale[k]];
      }
    };

    view.use = (X) => {
      view.stop("");
      view.known = { X: Float64Array.from(X), inputs: model.inputs, steps: X.length / model.inputs };
      view.futures = [];
      view.restart();
      view.delay = plots.usualDelay(view.futures[0].values, dims);
      view.tell();
    };

    /** Set the known values between two points of the pointer. */
    view.write = (a, b) => {
      const [from, to] = a.t <= b.t ? [a, b] : [b, a];
      for (let t = Math.max(from.t, view.firstEdited()); t <= Math.min(to.t, view.known.steps - 1); t++) {
        const f = to.t === from.t ? 1 : (t - from.t) / (to.t - from.t);
        view.known.X[t * view.known.inputs + a.k] = from.v + f * (to.v - from.v);
      }
      if (view.running) view.stop("");
      view.restart();
    };

    view.change = (to) => {
      Object.assign(view, to);
      view.loops.forEach((loop) => loop.change({ leak: view.leak, radius: view.radius }));
      if (!view.running) view.restart();
    };

    view.stop = (why) => {
      view.running = false;
      view.listeners.forEach((listener) => listener(why));
    };

    view.frame = () => {
      if (!view.running) return;
      view.loops.forEach((loop, i) => {
        const more = loop.advance(view.speed), future = view.futures[i];
        const kept = future.values.subarray(Math.max(0, future.values.length + more.length - TRACE * dims));
        const joined = new Float64Array(kept.length + more.length);
        joined.set(kept);
        joined.set(more, kept.length);
        future.dropped += (future.values.length - kept.length) / dims;
        view.traces[i] = future.values = joined;
      });
      if (view.turning) view.turn += 0.006;
      view.widen();
      view.redraw();
      const lost = view.loops.find((loop) => loop.distance > FAR);
      if (lost) view.stop(`The forecast of ${lost.base.name} has left its series: it is more than ${FAR} standard deviations from the mean. Lower the spectral radius, or reset.`);
      else { view.tell(); requestAnimationFrame(view.frame); }
    };
    return view;
  }

  function sliders(models, view) {
    const { layers: [layer] } = models[0], rho = layer.radius;
    const most = Math.max(1.5, 1.5 * rho);
    const leak = ui.slider({ label: "Leak of the units, on average", min: -1, max: 0.5, step: 0.01, value: 0,
      shown: (v) => number(layer.leak.reduce((sum, a) => sum + Math.min(1, a * 10 ** v), 0) / layer.units), oninput: (v) => view.change({ leak: 10 ** v }) });
    const radius = rho > 0
      ? ui.slider({ label: "Spectral radius", min: 0, max: most.toFixed(2), step: "any", value: rho, shown: (v) => v.toFixed(3), oninput: (v) => view.change({ radius: v / rho }) })
      : ui.slider({ label: "Recurrent weights, times", min: 0, max: 2, step: 0.01, value: 1, oninput: (v) => view.change({ radius: v }) });
    const speed = ui.slider({ label: "Steps per picture", min: 1, max: 20, step: 1, value: view.speed, shown: String, oninput: (v) => { view.speed = v; } });
    const learned = button("As learned", () => { leak.set(0); radius.set(rho > 0 ? rho : 1); view.change({ leak: 1, radius: 1 }); });
    return [leak.root, radius.root, speed.root, learned];
  }

  function mount(root, models) {
    const model = models[0], beside = models.length > 1, view = makeView(models), starts = beginnings(model);
    const names = ui.featureNames(model).slice(0, model.horizon).map((name, k) => (model.features[k] ? name : `value ${k + 1}`));
    const canvas = forecastCanvas(view), status = make("p", { class: "facts", id: "forecast-status" });
    canvas.onDraw((context, w, h, of) => {
      if (view.known) plots.drawForecast(context, w, h, of, { known: view.known, futures: view.futures, dims: view.dims, ranges: view.ranges, span: view.span(), cursor: view.cursor, names });
    });
    const attractors = view.loops.map((loop, i) => attractorCard(loop, i, view, beside));
    view.redrawAttractors = () => attractors.forEach((one) => one.redraw());
    view.redraw = () => { canvas.redraw(); view.redrawAttractors(); };
    let chosen = starts[0][1];
    const reset = () => view.use(chosen(EDITED));
    const go = button("Start", () => {
      if (view.running) { view.stop(""); return; }
      if (view.loops.some((loop) => loop.distance > FAR)) view.restart();
      view.running = true;
      go.textContent = "Stop";
      warn("");
      requestAnimationFrame(view.frame);
    }, { class: "main" });
    const pick = ui.select("Beginning", starts.map(([name], k) => [k, name]), (k) => { chosen = starts[k][1]; reset(); });
    const box = make("div", { class: "drop" }), controls = sliders(models, view);
    const exogenous = model.inputs > model.horizon ? ` Its ${model.inputs - model.horizon} further inputs are held at their mean.` : "";
    const interval = view.loops.some(({ base }) => base.extra.residuals) ? " The shaded band holds 90 % of the paths when errors like those of the training recur." : "";
    const main = card("Draw the beginning, watch it continue",
      `Draw in the left part with the pointer, or focus the picture and use the arrow keys.${interval}${exogenous}`, box);
    const warn = ui.message(box);
    box.append(make("div", { class: "row end" }, pick.root, go, button("Reset", reset)), canvas.element,
      beside ? drawing.legend(models.map((m, i) => [m.name, i])) : "", status, pasted(model, view));
    view.say = ui.announcer(root, { id: "announcement" });
    view.listeners.push((why) => { go.textContent = "Start"; if (why) { warn(why, "error"); view.say(why); } });
    view.tell = () => {
      const parts = view.loops.map((loop, i) => {
        const { values } = view.futures[i], n = view.ahead(i);
        return `${beside ? `${loop.base.name}: ` : ""}step ${n} ahead is ${Array.from(values.subarray(-view.dims), number).slice(0, 4).join(", ")}`;
      });
      const text = `${parts.join("; ")}.`;
      status.textContent = text[0].toUpperCase() + text.slice(1);
      if (!view.running || view.ahead(0) % 500 < view.speed) view.say(status.textContent);
    };
    root.append(main, card("The network", "Change how fast its units forget and how strongly they act on each other. The readout stays as it was learned.", make("div", { class: "row end" }, controls)),
      ...attractors.map((one) => one.root));
    reset();
  }

  /** A field into which a series can be pasted, or on which a file can be dropped. */
  function pasted(model, view) {
    const area = make("textarea", { "aria-label": "The beginning of a series as text: one step per line", spellcheck: false }), box = make("div"), tell = ui.message(box);
    const load = (text) => {
      try {
        const table = globalThis.echolearn.readTable(text, tableOptions(model));
        if (table.steps < 2) throw new Error("A beginning needs at least two steps.");
        tell(table.notes.join(" "));
        view.use(table.X);
      } catch (problem) { tell(problem.message, "error"); }
    };
    const details = make("details", {}, make("summary", {}, "Paste numbers instead"), box);
    box.append(make("p", { class: "note" }, `One step per line, ${model.inputs === 1 ? "one number" : `${model.inputs} numbers`} on each. A CSV file can also be dropped anywhere on the page.`),
      area, make("div", { class: "row after" }, button("Continue this series", () => load(area.value))));
    area.addEventListener("paste", () => setTimeout(() => load(area.value)));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", async (event) => {
      event.preventDefault();
      const file = event.dataTransfer.files[0];
      if (!file) return;
      details.open = true;
      area.value = await file.text();
      load(area.value);
    });
    return details;
  }

  globalThis.echolearn.views.register({ name: "forecaster", accepts: (model) => model.horizon !== null, mount });
})();
