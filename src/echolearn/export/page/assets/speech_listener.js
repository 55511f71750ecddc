/* What a network and its decoders make of sound, kept for drawing: no elements of the page here.

   await echolearn.speech.Listener.of(model) -> listener
     .start({live}), .take(rows of features), .finish(): run over a recording or what a microphone gives
     .frames, .states, .phones (posteriors), .phoneTokens, .wordTokens: {final, partial}
   new echolearn.speech.Track(columns) -> rows of bytes or floats that grow: .add(), .row(t), .length */
"use strict";
globalThis.echolearn.speech = globalThis.echolearn.speech || {};
(() => {
  /** Rows of numbers of one type, added one after another. */
  class Track {
    constructor(columns, Type = Uint8Array) {
      this.columns = columns;
      this.values = new Type(columns * 512);
      this.length = 0;
    }

    /** Return a new row to be filled. */
    add() {
      const at = this.length * this.columns;
      if (at + this.columns > this.values.length) {
        const larger = new this.values.constructor(2 * this.values.length);
        larger.set(this.values);
        this.values = larger;
      }
      this.length += 1;
      return this.values.subarray(at, at + this.columns);
    }

    row(t) {
      return this.values.subarray(t * this.columns, (t + 1) * this.columns);
    }
  }

  /** Runs of the likeliest phone of every frame, for a network without a decoder. */
  class FrameRuns {
    constructor(names, silences) {
      this.names = names;
      this.silent = names.map((name) => silences.includes(name));
      this.tokens = [];
      this.frame = 0;
    }

    advance(rows) {
      for (const row of rows) {
        const best = argmax(row), last = this.tokens[this.tokens.length - 1];
        this.frame += 1;
        if (last && last.name === this.names[best]) last.end = this.frame;
        else this.tokens.push({ name: this.names[best], start: this.frame - 1, end: this.frame, spoken: !this.silent[best] });
      }
      return { final: this.tokens.splice(0, this.tokens.length - 1), paused: false };
    }

    partial() { return this.tokens; }

    finish() { return { tokens: this.tokens, complete: true }; }
  }

  function argmax(row) {
    let best = 0;
    for (let k = 1; k < row.length; k++) if (row[k] > row[best]) best = k;
    return best;
  }

  class Listener {
    constructor(model, phoneDecoder, wordDecoder) {
      const payload = model.extra.speech;
      this.model = model;
      this.payload = payload;
      this.phoneDecoder = phoneDecoder;
      this.wordDecoder = wordDecoder;
      this.streams = model.streams && payload.recipe.normalise !== "utterance";
      // Row 0 of the units is the fastest one, of all layers: units are in the order of their leaks.
      const leaks = model.layers.flatMap((layer) => Array.from(layer.leak));
      this.order = leaks.map((_, k) => k).sort((a, b) => leaks[b] - leaks[a] || a - b);
      this.leaks = this.order.map((k) => leaks[k]);
      this.start({ live: false });
    }

    static async of(model) {
      const { Decoder } = globalThis.echolearn.speech;
      const decoders = await Promise.all(["phone_decoder", "word_decoder"].map((kind) => Decoder.of(model.extra.speech, kind)));
      return new Listener(model, ...decoders);
    }

    /** Begin anew. live: what was spoken before a pause is final at once; otherwise the whole recording decides. */
    start({ live }) {
      const { payload, model, phoneDecoder, wordDecoder } = this, pause = live ? payload.pause : null;
      this.live = live;
      this.state = this.streams ? model.start() : null;
      this.waiting = [];
      this.states = new Track(this.order.length);
      this.probabilities = new Track(payload.states.length, Float32Array);
      this.phones = new Track(payload.phones.length);
      this.phoneTokens = { final: [], partial: [] };
      this.wordTokens = wordDecoder ? { final: [], partial: [] } : null;
      this.levels = [{
        tokens: this.phoneTokens, decoder: phoneDecoder,
        search: phoneDecoder ? phoneDecoder.stream(pause) : new FrameRuns(payload.phones, payload.silences),
      }];
      if (wordDecoder) this.levels.push({ tokens: this.wordTokens, decoder: wordDecoder, search: wordDecoder.stream(pause) });
    }

    get frames() {
      return this.probabilities.length;
    }

    /** Take rows of features. A network that needs the end of the recording only keeps them. */
    take(rows) {
      if (!rows.length) return;
      if (!this.streams) {
        this.waiting.push(...rows);
        return;
      }
      const first = this.frames;
      for (const row of rows) {
        const answers = this.model.step(this.state, row);
        this.keep(answers, (k) => this.stateOf(k));
      }
      this.search(first);
    }

    stateOf(k) {
      let place = k;
      for (const { h } of this.state.layers) {
        if (place < h.length) return h[place];
        place -= h.length;
      }
      return 0;
    }

    /** Keep the answers of one frame, and the states as bytes: 128 is zero. */
    keep(answers, stateOf) {
      const { payload, order } = this, units = this.states.add();
      this.probabilities.add().set(answers);
      for (let r = 0; r < order.length; r++) units[r] = Math.max(1, Math.min(255, 128 + Math.round(127 * stateOf(order[r]))));
      const sums = new Float64Array(payload.phones.length);
      for (let s = 0; s < answers.length; s++) sums[payload.phone_of_state[s]] += answers[s];
      this.phones.add().set(sums.map((p) => Math.round(255 * Math.min(1, p))));
    }

    /** Hand the frames from number `first` on to the decoders. */
    search(first) {
      for (const { search, tokens, decoder } of this.levels) {
        const rows = [];
        for (let t = first; t < this.frames; t++) rows.push(decoder ? decoder.emissions(this.probabilities.row(t)) : this.phones.row(t));
        tokens.final.push(...search.advance(rows).final);
        tokens.partial = search.partial().map((token) => ({ ...token }));
      }
    }

    finish() {
      if (this.waiting.length) this.runWhole();
      for (const { search, tokens, decoder } of this.levels) {
        tokens.partial = [];
        if (!this.frames) continue;
        const end = search.finish();
        if (end.complete || this.live) {
          tokens.final.push(...end.tokens);
        } else { // the beam has lost every path that can end
          tokens.final.length = 0;
          const rows = Array.from({ length: this.frames }, (_, t) => this.probabilities.row(t));
          tokens.final.push(...decoder.decodeWithoutBeam(rows));
        }
      }
    }

    /** Run over a whole utterance at once, for a network that needs its end. */
    runWhole() {
      const n = this.model.inputs, steps = this.waiting.length, X = new Float64Array(n * steps);
      this.waiting.forEach((row, t) => X.set(row, t * n));
      this.waiting = [];
      const { answers, states } = this.model.run(X, { keep: true }), width = this.model.outputs;
      for (let t = 0; t < steps; t++) {
        const flat = states.flatMap((H) => Array.from(H.subarray((t * H.length) / steps, ((t + 1) * H.length) / steps)));
        this.keep(answers.subarray(t * width, (t + 1) * width), (k) => flat[k]);
      }
      this.search(0);
    }

    /** All tokens of a level, "phones" or "words", those that may still change marked. */
    tokens(level) {
      const found = level === "words" ? this.wordTokens : this.phoneTokens;
      return found ? [...found.final, ...found.partial.map((token) => ({ ...token, changing: true }))] : [];
    }

    /** What the network thought from frame start to end: the likeliest phones, and the runs of the likeliest one. */
    thoughts(start, end, count = 5) {
      const { payload } = this, n = payload.phones.length, means = new Float64Array(n), runs = [];
      const first = Math.max(0, start), stop = Math.min(end, this.frames);
      for (let t = first; t < stop; t++) {
        const sums = new Float64Array(n);
        this.probabilities.row(t).forEach((p, s) => { sums[payload.phone_of_state[s]] += p; });
        sums.forEach((p, k) => { means[k] += p / (stop - first); });
        const name = payload.phones[argmax(sums)], last = runs[runs.length - 1];
        if (last && last.name === name) last.frames += 1;
        else runs.push({ name, frames: 1 });
      }
      const likeliest = Array.from(means, (share, k) => ({ name: payload.phones[k], share }));
      likeliest.sort((a, b) => b.share - a.share);
      return { likeliest: likeliest.slice(0, count), runs, frames: Math.max(0, stop - first) };
    }
  }

  /** Sound that comes piece by piece, for listeners of one or several recipes: spectrum, samples, features. */
  class Recording {
    constructor(listeners, live) {
      this.listeners = listeners;
      this.spectrum = new Track(128); // half decibels of neighbouring pairs of frequencies, the highest first
      this.loudest = 0;
      this.pieces = [];
      this.count = 0;
      this.groups = new Map();
      for (const listener of listeners) {
        listener.start({ live });
        const key = JSON.stringify(listener.payload.recipe);
        if (!this.groups.has(key)) {
          const watch = this.groups.size ? undefined : (power) => this.see(power);
          const features = new globalThis.echolearn.speech.FeatureStream(listener.payload.recipe, watch);
          this.groups.set(key, { features, listeners: [] });
        }
        this.groups.get(key).listeners.push(listener);
      }
    }

    see(power) {
      const row = this.spectrum.add(), bins = row.length, each = (power.length - 1) / bins;
      for (let k = 0; k < bins; k++) {
        let sum = 0;
        for (let b = 0; b < each; b++) sum += power[1 + k * each + b];
        const level = Math.max(0, Math.min(255, 20 * Math.log10(sum / each + 1e-9)));
        row[bins - 1 - k] = level;
        if (level > this.loudest) this.loudest = level;
      }
    }

    /** Take samples at 16 kHz. */
    push(samples) {
      if (samples.length) this.pieces.push(samples);
      this.count += samples.length;
      for (const { features, listeners } of this.groups.values()) {
        const rows = features.push(samples);
        for (const listener of listeners) listener.take(rows);
      }
    }

    finish() {
      for (const { features, listeners } of this.groups.values()) {
        const rows = features.finish();
        for (const listener of listeners) {
          listener.take(rows);
          listener.finish();
        }
      }
    }

    get seconds() {
      return this.count / globalThis.echolearn.speech.RATE;
    }

    /** The samples from one to another, as one array. */
    samples(start = 0, end = this.count) {
      if (this.pieces.length > 1) {
        const all = new Float32Array(this.count);
        let at = 0;
        for (const piece of this.pieces) {
          all.set(piece, at);
          at += piece.length;
        }
        this.pieces = [all];
      }
      return this.pieces.length ? this.pieces[0].slice(Math.max(0, start), end) : new Float32Array(0);
    }
  }

  Object.assign(globalThis.echolearn.speech, { Track, Listener, Recording });
})();
