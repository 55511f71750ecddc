/* The pictures of a forecast: known values and what follows them, and the attractor in two and three dimensions. */
"use strict";
(() => {
  const { drawing } = globalThis.echolearn;
  const SHOWN = 4; // dimensions of a series

  /** The strip of one dimension: strips stand above each other. */
  function strip(width, height, k, dims) {
    const left = width < 520 ? 46 : 60, n = Math.min(dims, SHOWN), each = (height - 34) / n;
    return { x: left, y: 8 + k * each + (n > 1 ? 4 : 0), width: width - left - 14, height: each - (n > 1 ? 10 : 0) };
  }

  function band(context, box, { low, high, steps }, { k, dims, from, span, range, colour }) {
    const px = (t) => box.x + ((from + t - span[0]) / (span[1] - span[0])) * box.width;
    const py = (v) => box.y + box.height * (1 - (Math.min(Math.max(v, range[0] - 9e3), range[1] + 9e3) - range[0]) / (range[1] - range[0]));
    context.save();
    context.beginPath(); context.rect(box.x, box.y - 2, box.width, box.height + 4); context.clip();
    context.globalAlpha = 0.22;
    context.fillStyle = colour;
    context.beginPath();
    for (let t = 0; t < steps; t++) context.lineTo(px(t), py(high[t * dims + k]));
    for (let t = steps - 1; t >= 0; t--) context.lineTo(px(t), py(low[t * dims + k]));
    context.fill();
    context.restore();
  }

  /** known: {X, inputs, steps}; futures: of every model {values, dropped (steps that are no longer kept), interval}; span: the steps that are shown. */
  function drawForecast(context, width, height, of, { known, futures, dims, ranges, span, cursor, names }) {
    for (let k = 0; k < Math.min(dims, SHOWN); k++) {
      const box = strip(width, height, k, dims), range = ranges[k];
      const last = k === Math.min(dims, SHOWN) - 1;
      const now = box.x + ((known.steps - 1 - span[0]) / (span[1] - span[0])) * box.width;
      if (now > box.x) {
        context.fillStyle = of.soft;
        context.globalAlpha = 0.6;
        context.fillRect(box.x, box.y - 2, Math.min(now - box.x, box.width), box.height + 4);
        context.globalAlpha = 1;
      }
      drawing.axes(context, box, { y: range, x: last ? span : null }, of);
      futures.forEach(({ interval }, i) => {
        if (interval) band(context, box, interval, { k, dims, from: known.steps, span, range, colour: of.series[i] });
      });
      futures.forEach(({ values, dropped }, i) => {
        const joined = new Float64Array(values.length / dims + 1);
        joined[0] = dropped ? NaN : known.X[(known.steps - 1) * known.inputs + k];
        for (let t = 1; t < joined.length; t++) joined[t] = values[(t - 1) * dims + k];
        drawing.line(context, box, joined, { range, span, from: known.steps - 1 + dropped, colour: of.series[i], width: 2, dash: i ? [6, 3] : [] });
      });
      drawing.line(context, box, known.X, { range, span, colour: of.ink, width: 2, offset: k, stride: known.inputs });
      if (dims > 1) {
        context.font = "12px system-ui, sans-serif"; context.fillStyle = of.muted; context.textAlign = "left"; context.textBaseline = "top";
        context.fillText(names[k], box.x + 6, box.y);
      }
      if (now > box.x && now < box.x + box.width && k === 0) {
        context.font = "12px system-ui, sans-serif"; context.fillStyle = of.muted; context.textBaseline = "top";
        context.textAlign = "right"; context.fillText("you draw here", now - 6, box.y + (dims > 1 ? 0 : 2));
        context.textAlign = "left"; context.fillText("the network continues", now + 6, box.y + (dims > 1 ? 0 : 2));
      }
      if (cursor && cursor.k === k) {
        const x = box.x + ((cursor.t - span[0]) / (span[1] - span[0])) * box.width, v = known.X[cursor.t * known.inputs + k];
        const y = box.y + box.height * (1 - (v - range[0]) / (range[1] - range[0]));
        context.fillStyle = of.card; context.strokeStyle = of.ink; context.lineWidth = 2;
        context.beginPath(); context.arc(x, y, 5, 0, 2 * Math.PI); context.fill(); context.stroke();
      }
    }
  }

  /** Return the point (x, y, z), in standard deviations, of step t of a trace: three dimensions, or delayed values of fewer. */
  function makePoint(model, delay) {
    const { mean, scale } = model.answer, dims = model.outputs, z = (trace, t, k) => (trace[t * dims + k] - mean[k]) / scale[k];
    if (dims >= 3) return { first: 0, names: ["1st value", "2nd value", "3rd value"], at: (trace, t) => [z(trace, t, 0), z(trace, t, 1), z(trace, t, 2)] };
    if (dims === 2) return { first: delay, names: ["1st value", "2nd value", `1st, ${delay} steps before`], at: (trace, t) => [z(trace, t, 0), z(trace, t, 1), z(trace, t - delay, 0)] };
    return { first: 2 * delay, names: ["now", `${delay} steps before`, `${2 * delay} steps before`], at: (trace, t) => [z(trace, t, 0), z(trace, t - delay, 0), z(trace, t - 2 * delay, 0)] };
  }

  /** Draw a path through `project`ed points; the newest are the strongest. */
  function path(context, trace, dims, point, project, colour, newest) {
    const n = trace.length / dims, pieces = 24;
    context.strokeStyle = colour;
    context.lineJoin = "round";
    for (let piece = 0; piece < pieces; piece++) {
      const from = point.first + Math.floor(((n - point.first) * piece) / pieces), to = point.first + Math.floor(((n - point.first) * (piece + 1)) / pieces);
      context.globalAlpha = 0.3 + 0.65 * ((piece + 1) / pieces) ** 2;
      context.lineWidth = 1 + (piece === pieces - 1 ? 0.4 : 0);
      context.beginPath();
      for (let t = Math.max(from - 1, point.first); t < to; t++) context.lineTo(...project(point.at(trace, t)));
      context.stroke();
    }
    context.globalAlpha = 1;
    if (n > point.first) {
      const [x, y] = project(point.at(trace, n - 1));
      context.fillStyle = newest;
      context.beginPath(); context.arc(x, y, 4, 0, 2 * Math.PI); context.fill();
    }
  }

  const REACH = 3; // standard deviations

  function draw2d(context, width, height, of, { trace, dims, point, colour }) {
    const size = Math.min(width - 60, height - 40), box = { x: (width - size) / 2 + 14, y: 10, width: size, height: size };
    drawing.axes(context, box, { x: [-REACH, REACH], y: [-REACH, REACH], grid: true }, of);
    context.fillStyle = of.muted; context.font = "12px system-ui, sans-serif";
    context.textAlign = "right"; context.textBaseline = "bottom"; context.fillText(point.names[0], box.x + box.width, box.y + box.height - 4);
    context.textAlign = "left"; context.textBaseline = "top"; context.fillText(point.names[1], box.x + 5, box.y + 2);
    context.save();
    context.beginPath(); context.rect(box.x, box.y, box.width, box.height); context.clip();
    const to = (v) => ((v + REACH) / (2 * REACH)) * size;
    path(context, trace, dims, point, ([x, y]) => [box.x + to(x), box.y + size - to(y)], of.series[colour], of.ink);
    context.restore();
  }

  function draw3d(context, width, height, of, { trace, dims, point, colour, turn, tilt }) {
    const size = Math.min(width, height) / (2 * REACH * 1.5), cx = width / 2, cy = height / 2 + 6;
    const [ct, st, ci, si] = [Math.cos(turn), Math.sin(turn), Math.cos(tilt), Math.sin(tilt)];
    const project = ([x, y, z]) => {
      const u = ct * x - st * y, depth = st * x + ct * y, v = ci * z - si * depth, far = 1 / (1 + 0.05 * (ci * depth + si * z));
      return [cx + size * u * far, cy - size * v * far];
    };
    context.font = "12px system-ui, sans-serif";
    const corner = (i) => [i & 1 ? REACH : -REACH, i & 2 ? REACH : -REACH, i & 4 ? REACH : -REACH].map((v) => 0.8 * v);
    context.strokeStyle = of.line;
    context.lineWidth = 1;
    for (let i = 0; i < 8; i++) for (const bit of [1, 2, 4]) {
      if (i & bit) continue;
      context.beginPath(); context.moveTo(...project(corner(i))); context.lineTo(...project(corner(i | bit))); context.stroke();
    }
    context.fillStyle = of.muted;
    context.textAlign = "center"; context.textBaseline = "middle";
    [1, 2, 4].forEach((bit, k) => {
      const [a, b] = [project(corner(0)), project(corner(bit))];
      context.fillText(["x", "y", "z"][k], b[0] + (b[0] - a[0]) * 0.07, b[1] + (b[1] - a[1]) * 0.07);
    });
    path(context, trace, dims, point, project, of.series[colour], of.ink);
  }

  /** Return the steps after which a series has forgotten most of itself: where its autocorrelation first is below 1/e. */
  function usualDelay(values, dims) {
    const n = values.length / dims;
    let mean = 0;
    for (let t = 0; t < n; t++) mean += values[t * dims] / n;
    const at = (lag) => { let sum = 0; for (let t = lag; t < n; t++) sum += (values[t * dims] - mean) * (values[(t - lag) * dims] - mean); return sum; };
    const whole = at(0);
    for (let lag = 1; lag < Math.min(60, n / 4); lag++) if (at(lag) < whole / Math.E) return lag;
    return Math.max(1, Math.min(20, Math.floor(n / 4)));
  }

  globalThis.echolearn.forecasterPlots = { strip, drawForecast, makePoint, draw2d, draw3d, usualDelay, SHOWN };
})();
