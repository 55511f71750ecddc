/* The picture of what a network receives and recognises: spectrogram, hidden units, probabilities of phones, and the tokens, over time.

   new echolearn.speech.Score(listener, scene) -> {element, redraw()}
   scene: {recording, first, span, selection, playhead, select(selection), hint}, shared by all scores of a page: the
   frames that are seen, the stretch that is selected, and the frame that is played. */
"use strict";
globalThis.echolearn.speech = globalThis.echolearn.speech || {};
(() => {
  const { drawing, ui } = globalThis.echolearn;
  const BLOCK = 256; // frames of a picture that is drawn once and kept
  const MOST_BLOCKS = 24;
  const GUTTER = 62, NARROW_GUTTER = 50;
  const RANGE = 104; // half decibels between the loudest and what is drawn as silence
  const FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif";

  /** Return the 256 colours of a map as pixels, through a curve from [0, 1] to [0, 1]. */
  function pixels(map, curve) {
    return Uint32Array.from({ length: 256 }, (_, value) => {
      const k = 3 * Math.round(255 * Math.min(1, Math.max(0, curve(value / 255))));
      return (255 << 24) | (map[k + 2] << 16) | (map[k + 1] << 8) | map[k];
    });
  }

  const compressed = (share) => Math.sqrt(share);
  const centred = (share) => share - 128 / 255 + 0.5; // a state of 0 is in the middle of the colours

  /** Rows of bytes as a picture, one pixel per frame and row, drawn block by block when they are seen. */
  class Tape {
    constructor(order = null) {
      this.order = order; // which column of a row stands where; null: as they are
      this.blocks = new Map();
    }

    clear() {
      this.blocks.clear();
    }

    block(number, track, rows, colours) {
      let block = this.blocks.get(number);
      if (!block) {
        const canvas = document.createElement("canvas");
        canvas.width = BLOCK;
        canvas.height = rows;
        block = { canvas, drawn: 0 };
        this.blocks.set(number, block);
        if (this.blocks.size > MOST_BLOCKS) this.blocks.delete(this.blocks.keys().next().value);
      }
      const there = Math.min(BLOCK, track.length - number * BLOCK), width = there - block.drawn;
      if (width > 0) {
        const image = new ImageData(width, rows), out = new Uint32Array(image.data.buffer);
        for (let c = 0; c < width; c++) {
          const row = track.row(number * BLOCK + block.drawn + c);
          for (let r = 0; r < rows; r++) out[r * width + c] = colours[row[this.order ? this.order[r] : r]];
        }
        block.canvas.getContext("2d").putImageData(image, block.drawn, 0);
        block.drawn = there;
      }
      return block.canvas;
    }

    /** Draw the frames from `first` on, `span` of them, into a box. */
    draw(context, box, track, colours, first, span) {
      const rows = this.order ? this.order.length : track.columns, wide = box.width / span;
      context.imageSmoothingEnabled = box.height * devicePixelRatio < rows || wide * devicePixelRatio < 1;
      const stop = Math.min(track.length, first + span);
      for (let at = Math.max(0, first); at < stop; ) {
        const number = Math.floor(at / BLOCK), end = Math.min(stop, (number + 1) * BLOCK), from = at - number * BLOCK;
        const picture = this.block(number, track, rows, colours);
        context.drawImage(picture, from, 0, end - at, rows, box.x + (at - first) * wide, box.y, (end - at) * wide, box.height);
        at = end;
      }
    }
  }

  class Score {
    constructor(listener, scene) {
      this.listener = listener;
      this.scene = scene;
      this.phoneRows = listener.payload.groups.flatMap((group) => group.phones);
      this.tapes = { spectrum: new Tape(), units: new Tape(), phones: new Tape(this.phoneRows) };
      this.canvas = drawing.canvas({
        height: 600, focusable: true, label: `What ${listener.model.name} recognises: spectrogram, hidden units, probabilities of phones, and recognised phones over time`,
        tall: (width) => this.layout(width).height,
      });
      this.element = this.canvas.element;
      this.element.classList.add("score");
      this.canvas.onDraw((context, width, height, colours) => this.draw(context, width, colours));
      ui.onTheme(() => this.forget());
      this.pointing();
    }

    redraw() {
      this.canvas.redraw();
    }

    /** Forget what was drawn: after another recording, or in other colours. */
    forget() {
      this.palette = null;
      for (const tape of Object.values(this.tapes)) tape.clear();
      this.redraw();
    }

    /** Return the boxes of all lanes for a width. */
    layout(width) {
      const narrow = width < 480, x = narrow ? NARROW_GUTTER : GUTTER, inside = Math.max(10, width - x - 1);
      const phoneHeight = Math.max(84, Math.min(this.phoneRows.length * (narrow ? 3.4 : 4.2), narrow ? 190 : 230));
      const lanes = [
        ["spectrum", "Spectrogram, kHz", narrow ? 90 : 112], ["units", this.unitsCaption(narrow), narrow ? 120 : 150],
        ["phones", "Probabilities of phones", phoneHeight], ["phoneTokens", this.listener.phoneDecoder ? "Phones" : "Likeliest phone of each frame", 26],
      ];
      if (this.listener.wordTokens) lanes.push(["wordTokens", "Words", 30]);
      const boxes = {};
      let y = 0;
      for (const [name, caption, height] of lanes) {
        y += 19;
        boxes[name] = { x, y, width: inside, height, caption };
        y += height + 5;
      }
      return { boxes, height: y + 20, axis: y, x, width: inside };
    }

    unitsCaption(narrow) {
      const { leaks } = this.listener, fast = leaks[0], slow = leaks[leaks.length - 1];
      if (narrow || fast === slow) return "Hidden units";
      return `Hidden units: fast ones above (leak ${ui.number(fast)}), slow ones below (${ui.number(slow)})`;
    }

    colours() {
      const top = this.scene.recording ? Math.ceil(this.scene.recording.loudest / 6) * 6 : 255;
      if (this.palette && this.palette.top === top) return this.palette;
      if (this.palette && this.palette.top !== top) this.tapes.spectrum.clear();
      const dark = ui.isDark(), low = top - RANGE;
      this.palette = {
        top, spectrum: pixels(drawing.sequential(dark), (share) => Math.max(0, (255 * share - low) / RANGE) ** 1.5),
        units: pixels(drawing.diverging(dark), centred), phones: pixels(drawing.sequential(dark), compressed),
      };
      return this.palette;
    }

    draw(context, width, of) {
      const { listener, scene } = this, layout = this.layout(width), { boxes } = layout, { recording } = scene;
      this.last = layout;
      context.font = `12px ${FONT}`;
      for (const box of Object.values(boxes)) {
        context.fillStyle = of.paper;
        context.fillRect(box.x, box.y, box.width, box.height);
        context.fillStyle = of.muted;
        context.textAlign = "left";
        context.textBaseline = "alphabetic";
        context.fillText(box.caption, box.x, box.y - 5, box.width);
      }
      this.labels(context, boxes, of);
      if (!recording) {
        this.hint(context, boxes.units, of);
        return;
      }
      const palette = this.colours(), { first, span } = scene;
      this.tapes.spectrum.draw(context, boxes.spectrum, recording.spectrum, palette.spectrum, first, span);
      this.tapes.units.draw(context, boxes.units, listener.states, palette.units, first, span);
      this.tapes.phones.draw(context, boxes.phones, listener.phones, palette.phones, first, span);
      this.kinds(context, boxes.phones, of);
      this.path(context, boxes.phones, of);
      this.tokens(context, boxes.phoneTokens, listener.tokens("phones"), of, 12);
      if (boxes.wordTokens) this.tokens(context, boxes.wordTokens, listener.tokens("words"), of, 14);
      this.timeAxis(context, layout, of);
      this.marks(context, layout, of);
    }

    hint(context, box, of) {
      context.fillStyle = of.muted;
      context.font = `15px ${FONT}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      const lines = box.width < 420 ? ["Start the microphone and speak,", "or drop a recording here."] : ["Start the microphone and speak, or drop a recording here."];
      lines.forEach((line, k) => context.fillText(line, box.x + box.width / 2, box.y + box.height / 2 + 22 * (k - (lines.length - 1) / 2)));
    }

    labels(context, boxes, of) {
      const put = (text, x, y) => context.fillText(text, x, y, boxes.spectrum.x - 8);
      context.fillStyle = of.muted;
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.font = `11px ${FONT}`;
      const { spectrum, units, phones } = boxes, edge = spectrum.x - 6;
      for (const khz of [0, 2, 4, 6, 8]) {
        const y = spectrum.y + spectrum.height * (1 - khz / 8);
        put(String(khz), edge, Math.min(spectrum.y + spectrum.height - 5, Math.max(spectrum.y + 5, y)));
      }
      put("fast", edge, units.y + 6);
      put("slow", edge, units.y + units.height - 6);
      const high = phones.height / this.phoneRows.length;
      let row = 0;
      for (const group of this.listener.payload.groups) {
        const y = phones.y + row * high, size = group.phones.length * high;
        if (size >= 9) put(group.name, edge, y + size / 2);
        else if (row + group.phones.length === this.phoneRows.length) put(group.name, edge, phones.y + phones.height - 3);
        row += group.phones.length;
      }
    }

    /** Lines between the kinds of phones. */
    kinds(context, box, of) {
      const high = box.height / this.phoneRows.length;
      let row = 0;
      context.strokeStyle = of.line;
      context.lineWidth = 1;
      for (const group of this.listener.payload.groups.slice(0, -1)) {
        row += group.phones.length;
        context.beginPath();
        context.moveTo(box.x - 5, Math.round(box.y + row * high) + 0.5);
        context.lineTo(box.x + box.width, Math.round(box.y + row * high) + 0.5);
        context.stroke();
      }
    }

    x(frame, box) {
      return box.x + ((frame - this.scene.first) / this.scene.span) * box.width;
    }

    within(context, box, draw) {
      context.save();
      context.beginPath();
      context.rect(box.x, box.y - 1, box.width, box.height + 2);
      context.clip();
      draw();
      context.restore();
    }

    /** Outline the recognised phones among the probabilities. */
    path(context, box, of) {
      const { phones } = this.listener.payload, high = box.height / this.phoneRows.length;
      const place = new Map(this.phoneRows.map((phone, row) => [phones[phone], row]));
      this.within(context, box, () => {
        context.strokeStyle = of.series[1];
        context.lineWidth = 1.5;
        for (const token of this.seen(this.listener.tokens("phones"))) {
          const left = this.x(token.start, box), right = this.x(token.end, box);
          if (token.spoken) context.strokeRect(left, box.y + place.get(token.name) * high - 0.5, right - left, high + 1);
        }
      });
    }

    seen(tokens) {
      const { first, span } = this.scene;
      return tokens.filter((token) => token.end > first && token.start < first + span);
    }

    /** Draw tokens as boxes with their names; those that may still change have no filling. */
    tokens(context, box, tokens, of, size) {
      this.within(context, box, () => {
        context.textBaseline = "middle";
        for (const token of this.seen(tokens)) {
          const left = this.x(token.start, box), wide = this.x(token.end, box) - left, own = this.isSelected(token);
          context.fillStyle = own ? of.accent : token.changing ? of.paper : token.spoken ? of.soft : of.paper;
          context.strokeStyle = own ? of.accent : token.spoken ? of.accent : of.line;
          context.lineWidth = 1;
          context.setLineDash(token.changing ? [3, 3] : []);
          context.beginPath();
          context.roundRect(left + 0.5, box.y + 0.5, Math.max(1, wide - 1), box.height - 1, 3);
          context.fill();
          context.stroke();
          context.setLineDash([]);
          context.font = `${token.spoken ? 600 : 400} ${size}px ${FONT}`;
          let needed = context.measureText(token.name).width;
          if (needed > wide - 2 && needed * 0.8 <= wide) {
            context.font = `${token.spoken ? 600 : 400} ${Math.max(9.5, (size * (wide - 1)) / needed)}px ${FONT}`;
            needed = context.measureText(token.name).width;
          }
          context.fillStyle = own ? of.card : token.spoken ? of.ink : of.muted;
          context.textAlign = "center";
          if (needed <= wide + 1) context.fillText(token.name, left + wide / 2, box.y + box.height / 2 + 0.5);
        }
      });
    }

    isSelected(token) {
      const { selection } = this.scene;
      return Boolean(selection && selection.name === token.name && selection.start === token.start && selection.end === token.end);
    }

    timeAxis(context, { axis, x, width }, of) {
      const { first, span } = this.scene, second = this.listener.payload.frame_seconds;
      context.font = `11px ${FONT}`;
      context.fillStyle = of.muted;
      context.strokeStyle = of.line;
      context.textBaseline = "top";
      context.textAlign = "center";
      const marks = drawing.ticks(Math.max(0, first) * second, (first + span) * second, Math.max(2, Math.floor(width / 80)));
      for (const time of marks) {
        const at = x + ((time / second - first) / span) * width;
        context.beginPath();
        context.moveTo(Math.round(at) + 0.5, axis);
        context.lineTo(Math.round(at) + 0.5, axis + 4);
        context.stroke();
        if (at > x + 8 && at < x + width - 14) context.fillText(`${Number(time.toFixed(2))} s`, at, axis + 6);
      }
    }

    /** Show the selected stretch and the place that is played, in all lanes. */
    marks(context, { boxes }, of) {
      const { selection, playhead } = this.scene;
      const line = (box, frame, colour) => {
        const at = this.x(frame, box);
        context.strokeStyle = colour;
        context.lineWidth = 1.5;
        context.beginPath();
        context.moveTo(at, box.y);
        context.lineTo(at, box.y + box.height);
        context.stroke();
      };
      for (const box of Object.values(boxes)) {
        this.within(context, box, () => {
          if (selection) {
            const left = this.x(selection.start, box);
            context.fillStyle = of.accent;
            context.globalAlpha = 0.16;
            context.fillRect(left, box.y, this.x(selection.end, box) - left, box.height);
            context.globalAlpha = 1;
            line(box, selection.start, of.accent);
            line(box, selection.end, of.accent);
          }
          if (playhead !== null) line(box, playhead, of.ink);
        });
      }
    }

    /** A click selects the token below it, dragging selects a stretch. */
    pointing() {
      let pressed = null;
      const frameAt = (event) => {
        const { x, width } = this.last;
        const share = (event.clientX - this.element.getBoundingClientRect().left - x) / width;
        return this.scene.first + Math.min(1, Math.max(0, share)) * this.scene.span;
      };
      this.element.addEventListener("pointerdown", (event) => {
        if (event.button !== 0 || !this.scene.recording || !this.last) return;
        const y = event.clientY - this.element.getBoundingClientRect().top, words = this.last.boxes.wordTokens;
        pressed = { frame: frameAt(event), clientX: event.clientX, level: words && y >= words.y - 8 && y <= words.y + words.height + 6 ? "words" : "phones" };
        this.element.setPointerCapture(event.pointerId);
      });
      this.element.addEventListener("pointermove", (event) => {
        if (!pressed || Math.abs(event.clientX - pressed.clientX) < 6) return;
        pressed.dragged = true;
        const ends = [pressed.frame, frameAt(event)].sort((a, b) => a - b);
        this.scene.select({ start: Math.floor(ends[0]), end: Math.ceil(ends[1]), level: null, name: null }, { play: false });
      });
      this.element.addEventListener("pointerup", () => {
        if (!pressed) return;
        const { frame, level, dragged } = pressed;
        pressed = null;
        if (dragged) {
          this.scene.select(this.scene.selection, { play: true });
          return;
        }
        const token = this.listener.tokens(level).find((one) => one.start <= frame && frame < one.end);
        this.scene.select(token ? { ...token, level } : null, { play: true });
      });
      this.element.addEventListener("pointercancel", () => { pressed = null; });
    }
  }

  Object.assign(globalThis.echolearn.speech, { Score });
})();
