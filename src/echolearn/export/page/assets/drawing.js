/* Drawing on canvases in the colours of the page, sharp on every screen.

   echolearn.drawing.canvas({height, label}) -> {element, context, width, height, onDraw(f), redraw()}
     A canvas as wide as its place; f(context, width, height, colours) draws it, again after every change of size or theme.
   echolearn.drawing.colours() -> {ink, muted, line, card, accent, series: [...]}
   echolearn.drawing.heat(context, values, rows, columns, box, {low, high, map}): values[row * columns + column], row 0 on top
   echolearn.drawing.diverging(dark), .sequential(dark): 256 colours as Uint8Array (256 * 3)
   echolearn.drawing.axes(context, box, {x: [low, high], y: [low, high], xLabel, yLabel, format}, colours)
   echolearn.drawing.line(context, box, values, {range, colour, width, first, stride, offset}) */
"use strict";
(() => {
  const { make, isDark, onTheme, number } = globalThis.echolearn.ui;
  const NAMES = ["ink", "muted", "line", "card", "paper", "accent", "soft"];

  function colours() {
    const style = getComputedStyle(document.documentElement), out = { series: [] };
    for (const name of NAMES) out[name] = style.getPropertyValue(`--${name}`).trim();
    for (let k = 1; k <= 8; k++) out.series.push(style.getPropertyValue(`--c${k}`).trim());
    return out;
  }

  function canvas({ height, label, focusable = false, tall = null }) {
    const element = make("canvas", { role: focusable ? "application" : "img", "aria-label": label, tabindex: focusable ? "0" : null });
    const self = { element, context: element.getContext("2d"), width: 0, height, draw: null };
    let scheduled = false;
    self.redraw = () => {
      if (scheduled) return;
      scheduled = true;
      requestAnimationFrame(() => { scheduled = false; self.now(); });
    };
    self.now = () => {
      const ratio = Math.min(devicePixelRatio || 1, 2), width = element.clientWidth;
      if (!width) return;
      self.height = tall ? tall(width) : height;
      element.style.height = `${self.height}px`;
      if (element.width !== Math.round(width * ratio) || element.height !== Math.round(self.height * ratio)) {
        element.width = Math.round(width * ratio);
        element.height = Math.round(self.height * ratio);
      }
      self.width = width;
      self.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      self.context.clearRect(0, 0, width, self.height);
      if (self.draw) self.draw(self.context, width, self.height, colours());
    };
    self.onDraw = (draw) => { self.draw = draw; self.redraw(); };
    new ResizeObserver(self.redraw).observe(element);
    onTheme(self.redraw);
    return self;
  }

  /** Return 256 colours between anchors [[r, g, b], ...]. */
  function ramp(anchors) {
    const out = new Uint8Array(768);
    for (let i = 0; i < 256; i++) {
      const place = (i / 255) * (anchors.length - 1), k = Math.min(Math.floor(place), anchors.length - 2), f = place - k;
      for (let c = 0; c < 3; c++) out[3 * i + c] = Math.round(anchors[k][c] * (1 - f) + anchors[k + 1][c] * f);
    }
    return out;
  }

  // Zero has the colour of the paper, so that what is silent recedes in both themes; both ends differ in
  // lightness from it and by hue (blue, orange) from each other, also by readers who do not tell red from green.
  const MAPS = {
    diverging: [
      ramp([[0, 52, 94], [33, 113, 168], [120, 180, 214], [214, 230, 238], [250, 249, 246], [247, 220, 192], [233, 156, 90], [197, 92, 26], [115, 43, 0]]),
      ramp([[170, 220, 255], [84, 168, 224], [38, 106, 158], [26, 56, 82], [24, 28, 34], [82, 50, 26], [160, 88, 32], [232, 142, 66], [255, 212, 160]]),
    ],
    sequential: [
      ramp([[255, 255, 255], [214, 231, 237], [140, 190, 208], [62, 138, 168], [18, 84, 116], [6, 40, 66]]),
      ramp([[24, 28, 34], [26, 52, 66], [32, 92, 116], [52, 144, 172], [120, 202, 220], [224, 250, 250]]),
    ],
  };
  const diverging = (dark = isDark()) => MAPS.diverging[dark ? 1 : 0];
  const sequential = (dark = isDark()) => MAPS.sequential[dark ? 1 : 0];

  const sheet = document.createElement("canvas");

  /** Draw a matrix as colours into box {x, y, width, height}. */
  function heat(context, values, rows, columns, box, { low = -1, high = 1, map = diverging() } = {}) {
    if (!rows || !columns) return;
    const wide = Math.min(columns, Math.ceil(box.width * 2)), high_ = Math.min(rows, Math.ceil(box.height * 2));
    sheet.width = wide;
    sheet.height = high_;
    const own = sheet.getContext("2d"), image = own.createImageData(wide, high_), scale = 255 / (high - low || 1);
    for (let r = 0, p = 0; r < high_; r++) {
      const row = Math.floor((r * rows) / high_) * columns;
      for (let c = 0; c < wide; c++, p += 4) {
        const v = values[row + Math.floor((c * columns) / wide)];
        const k = 3 * Math.min(255, Math.max(0, Math.round((v - low) * scale) || 0));
        image.data[p] = map[k]; image.data[p + 1] = map[k + 1]; image.data[p + 2] = map[k + 2];
        image.data[p + 3] = Number.isNaN(v) ? 0 : 255;
      }
    }
    own.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(sheet, box.x, box.y, box.width, box.height);
  }

  /** Return round numbers between low and high, about `count` of them. */
  function ticks(low, high, count = 5) {
    const span = high - low;
    if (!(span > 0) || !Number.isFinite(span)) return [low];
    const rough = span / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
    const out = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) out.push(Number((k * step).toPrecision(12)));
    return out;
  }

  function axes(context, box, { x, y, xLabel = "", yLabel = "", format = number, grid = true }, of) {
    context.font = "12px system-ui, sans-serif";
    context.lineWidth = 1;
    context.strokeStyle = of.line;
    context.fillStyle = of.muted;
    const place = (v, [low, high], from, size) => from + ((v - low) / (high - low || 1)) * size;
    if (y) {
      context.textAlign = "right";
      context.textBaseline = "middle";
      for (const v of ticks(y[0], y[1], Math.max(3, Math.floor(box.height / 40)))) {
        const at = Math.round(place(v, y, box.y + box.height, -box.height)) + 0.5;
        if (grid) { context.beginPath(); context.moveTo(box.x, at); context.lineTo(box.x + box.width, at); context.stroke(); }
        context.fillText(format(v), box.x - 6, at);
      }
    }
    if (x) {
      context.textAlign = "center";
      context.textBaseline = "top";
      for (const v of ticks(x[0], x[1], Math.max(2, Math.floor(box.width / 90)))) {
        const at = Math.round(place(v, x, box.x, box.width)) + 0.5;
        context.beginPath(); context.moveTo(at, box.y + box.height); context.lineTo(at, box.y + box.height + 4); context.stroke();
        const text = number(v), half = context.measureText(text).width / 2, right = box.x + box.width + 12;
        context.fillText(text, Math.min(at, right - half), box.y + box.height + 6);
      }
    }
    if (xLabel) { context.textAlign = "right"; context.textBaseline = "bottom"; context.fillText(xLabel, box.x + box.width, box.y + box.height - 3); }
    if (yLabel) { context.textAlign = "left"; context.textBaseline = "bottom"; context.fillText(yLabel, box.x, box.y - 4); }
  }

  /** Draw values[offset + stride * t] for t = 0, 1, ... as a line; x runs over `span` [first, last] of time. */
  function line(context, box, values, { range, span, colour, width = 1.75, offset = 0, stride = 1, from = 0, dash = [] }) {
    const n = Math.floor((values.length - offset - 1) / stride) + 1, [low, high] = range, [first, last] = span || [0, Math.max(n - 1, 1)];
    context.save();
    context.beginPath();
    context.rect(box.x, box.y - 2, box.width, box.height + 4);
    context.clip();
    context.beginPath();
    let drawn = false;
    const skip = Math.max(1, Math.floor(n / (box.width * 4)));
    for (let i = 0; i < n; i += skip) {
      const v = values[offset + stride * i];
      if (!Number.isFinite(v)) { drawn = false; continue; }
      const px = box.x + ((from + i - first) / (last - first || 1)) * box.width;
      const py = box.y + box.height - ((v - low) / (high - low || 1)) * box.height;
      if (drawn) context.lineTo(px, py);
      else { context.moveTo(px, py); if (n === 1) context.lineTo(px + 0.5, py); }
      drawn = true;
    }
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineJoin = "round";
    context.setLineDash(dash);
    context.stroke();
    context.restore();
  }

  /** Return the smallest and largest finite number with a margin; never an empty range. */
  function rangeOf(values, margin = 0.05) {
    let low = Infinity, high = -Infinity;
    for (const v of values) if (Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v; }
    if (low > high) return [0, 1];
    const rest = (high - low || Math.abs(high) || 1) * margin;
    return [low - rest, high + rest];
  }

  /** A legend of [name, colour] pairs as elements. */
  function legend(entries) {
    return make("ul", { class: "legend" }, entries.map(([name, k]) => make("li", {}, make("span", { class: `swatch s${(k % 8) + 1}`, "aria-hidden": "true" }), name)));
  }

  globalThis.echolearn.drawing = { canvas, colours, diverging, sequential, ramp, heat, ticks, axes, line, rangeOf, legend };
})();
