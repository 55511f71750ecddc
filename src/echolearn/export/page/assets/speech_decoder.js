/* The search for the best path through a decoding graph, as echolearn.speech.recognition computes it: the same scores
   in single precision, arcs in the same order, so that the same probabilities give the same tokens.

   await echolearn.speech.Decoder.of(payload, "phone_decoder") -> decoder, or null if the payload has none
     decoder.emissions(probabilities of the states) -> what a search takes
     decoder.stream(pause) -> search: search.advance([emissions, ...]) -> {final, paused}, .partial(), .finish()
   A token is {name, start, end, spoken}: frames, and whether it is more than silence. */
"use strict";
globalThis.echolearn.speech = globalThis.echolearn.speech || {};
(() => {
  const GRID = 10; // frames between two looks for a pause
  const SPARE = 10000; // records that may be there before those that nobody needs are removed
  const SMALLEST = 1e-10; // probabilities below count as this
  const BEFORE = 0; // the columns of a record: the record before it, the token, the frame after its last
  const TOKEN = 1;
  const END = 2;

  // The graph of a payload, from its arrays. `step` has for every arc how far its target is from its source. Arcs that
  // take a frame (to nodes that emit) and those that take none (to anchors) are kept apart, in their order.
  class Graph {
    constructor({ emission, arcs, step, weight, token, final, start, tokens, silences }) {
      const n = emission.length;
      this.emission = emission;
      this.final = final;
      this.start = start;
      this.tokens = tokens;
      this.emitting = emission.findIndex((state) => state < 0);
      const target = new Int32Array(step.length);
      let taking = 0;
      for (let u = 0, arc = 0; u < n; u++) {
        for (const end = arc + arcs[u]; arc < end; arc++) {
          target[arc] = u + step[arc];
          if (target[arc] < this.emitting) taking += 1;
        }
      }
      this.first = new Int32Array(n + 1);
      this.target = new Int32Array(taking);
      this.weight = new Float32Array(taking);
      this.anchorFirst = new Int32Array(n + 1);
      this.anchorTarget = new Int32Array(step.length - taking);
      this.anchorWeight = new Float32Array(step.length - taking);
      this.anchorToken = new Int32Array(step.length - taking);
      for (let u = 0, arc = 0, a = 0, b = 0; u < n; u++) {
        for (const end = arc + arcs[u]; arc < end; arc++) {
          if (target[arc] < this.emitting) {
            this.target[a] = target[arc];
            this.weight[a++] = weight[arc];
          } else {
            this.anchorTarget[b] = target[arc];
            this.anchorWeight[b] = weight[arc];
            this.anchorToken[b++] = token[arc];
          }
        }
        this.first[u + 1] = a;
        this.anchorFirst[u + 1] = b;
      }
      const silent = new Set(silences);
      this.spoken = tokens.map((name) => !silent.has(name));
    }
  }

  // A search in progress: scores are log probabilities of the best path to each node, less those of the best.
  class Search {
    constructor(graph, languageWeight, beam) {
      const n = graph.emission.length;
      this.graph = graph;
      this.languageWeight = Math.fround(languageWeight);
      this.beam = Math.fround(beam);
      this.scores = new Float32Array(n).fill(-Infinity);
      this.record = new Int32Array(n).fill(-1);
      this.records = new Int32Array(3 * 1024);
      this.count = 0;
      this.frame = 0;
      this.fresh = new Float32Array(n).fill(-Infinity);
      this.carried = new Int32Array(n);
      this.completed = new Int32Array(n);
      this.reached = new Int32Array(graph.emitting);
      this.alive = new Int32Array(n);
      this.living = 0;
      this.scores[graph.start] = 0;
      for (let u = graph.emitting; u < n; u++) if (this.scores[u] > -Infinity) this.passOn(u);
      this.lookWhoLives();
    }

    // List the nodes that are alive, in the order of their numbers.
    lookWhoLives() {
      this.living = 0;
      for (let u = 0; u < this.scores.length; u++) if (this.scores[u] > -Infinity) this.alive[this.living++] = u;
    }

    // Take one frame of scaled log probabilities of the states.
    advance(emissions) {
      const { graph, scores, record, fresh, carried, completed, reached, alive } = this;
      const { emission, emitting } = graph;
      const found = this.reach();
      let best = -Infinity;
      for (let k = 0; k < found; k++) {
        const v = reached[k];
        fresh[v] += emissions[emission[v]];
        if (fresh[v] > best) best = fresh[v];
      }
      const worst = Math.fround(best - this.beam);
      this.living = 0;
      for (let k = 0; k < found; k++) {
        const v = reached[k];
        if (fresh[v] >= worst) {
          alive[this.living++] = v;
          scores[v] = fresh[v] - best;
          record[v] = carried[v];
          this.passOn(v);
        }
        fresh[v] = -Infinity;
      }
      this.frame += 1;
      this.makeRoom(scores.length - emitting);
      for (let u = emitting; u < scores.length; u++) {
        if (scores[u] > -Infinity) {
          alive[this.living++] = u;
          this.records[3 * this.count + BEFORE] = carried[u];
          this.records[3 * this.count + TOKEN] = completed[u];
          this.records[3 * this.count + END] = this.frame;
          record[u] = this.count++;
          this.passOn(u);
        }
      }
    }

    // Go from the nodes that are alive to those that emit; return how many were reached. The old scores are erased.
    reach() {
      const { graph, scores, record, fresh, carried, reached, alive, living } = this;
      const { first, target, weight } = graph;
      let found = 0;
      for (let k = 0; k < living; k++) {
        const u = alive[k];
        const own = scores[u];
        const end = first[u + 1];
        for (let arc = first[u]; arc < end; arc++) {
          const v = target[arc];
          const score = Math.fround(own + weight[arc]);
          const before = fresh[v];
          if (score > before) {
            if (before === -Infinity) reached[found++] = v;
            fresh[v] = score;
            carried[v] = record[u];
          }
        }
      }
      for (let k = 0; k < living; k++) scores[alive[k]] = -Infinity;
      return found;
    }

    // Go from one node to the anchors behind it, without taking a frame.
    passOn(u) {
      const { graph, scores, record, carried, completed } = this;
      const { anchorFirst, anchorTarget, anchorWeight, anchorToken } = graph;
      const end = anchorFirst[u + 1];
      for (let arc = anchorFirst[u]; arc < end; arc++) {
        const v = anchorTarget[arc];
        const score = Math.fround(scores[u] + anchorWeight[arc]);
        if (score > scores[v]) {
          scores[v] = score;
          carried[v] = record[u];
          completed[v] = anchorToken[arc];
        }
      }
    }

    makeRoom(more) {
      if (3 * (this.count + more) <= this.records.length) return;
      const larger = new Int32Array(2 * this.records.length + 3 * more);
      larger.set(this.records);
      this.records = larger;
    }

    // The tokens of the best path that ends now; null if no path can end here.
    best() {
      const { scores, graph, languageWeight } = this;
      let highest = -Infinity;
      let node = -1;
      for (let u = graph.emitting; u < scores.length; u++) {
        if (graph.final[u - graph.emitting] === -Infinity) continue;
        const score = Math.fround(scores[u] + Math.fround(languageWeight * graph.final[u - graph.emitting]));
        if (score > highest) {
          highest = score;
          node = u;
        }
      }
      return node < 0 ? null : this.tokensOf(this.record[node]);
    }

    // The node that emits on the best live path.
    bestNode() {
      let node = 0;
      for (let u = 1; u < this.graph.emitting; u++) if (this.scores[u] > this.scores[node]) node = u;
      return node;
    }

    // Read back the tokens of a path from its last record.
    tokensOf(record) {
      const { records, graph } = this;
      const found = [];
      for (let own = record; own >= 0; own = records[3 * own + BEFORE]) {
        const token = records[3 * own + TOKEN];
        const before = records[3 * own + BEFORE];
        if (token < 0) continue;
        const start = before >= 0 ? records[3 * before + END] : 0;
        found.push({ name: graph.tokens[token], start, end: records[3 * own + END], spoken: graph.spoken[token] });
      }
      return found.reverse();
    }
  }

  // A search that hands out tokens as soon as they are final: when no live path disagrees with them or, with `pause`,
  // after so many frames of silence.
  class CommittingSearch {
    constructor(search, silentStates, pause = null) {
      this.search = search;
      this.pause = pause;
      this.silentStates = new Set(silentStates);
      this.root = -1;
      this.lastSpoken = 0; // the end of the last spoken token that is final
      this.paused = 0; // the end of the last spoken token that a pause was found after
    }

    // Take frames of scaled log probabilities; return the tokens that have become final, and whether there was a pause.
    // With pauses, the nodes are put in order at every look for one: of equal scores the same wins as in Python.
    advance(frames) {
      const final = [];
      let paused = false;
      for (const frame of frames) {
        if (this.pause !== null && this.search.frame % GRID === 0) this.search.lookWhoLives();
        this.search.advance(frame);
        if (this.pause !== null && this.search.frame % GRID === 0 && this.commitAtPause()) {
          paused = true;
          final.push(...this.committed());
        } else if (this.search.count > SPARE) {
          final.push(...this.committed());
        }
      }
      final.push(...this.committed());
      return { final, paused };
    }

    // The tokens of the best live path after those that are final.
    partial() {
      return this.search.tokensOf(this.search.record[this.search.bestNode()]);
    }

    // The tokens of the best path that ends here after those that are final, and whether there is such a path; if not,
    // the tokens are those of the best live path.
    finish() {
      const tokens = this.search.best();
      return { tokens: tokens ?? this.partial(), complete: tokens !== null };
    }

    // Return whether the best path has just come to a pause; if so, give up paths with other tokens before it.
    commitAtPause() {
      const s = this.search;
      const best = s.bestNode();
      if (!this.silentStates.has(s.graph.emission[best])) return false;
      let own = s.record[best];
      while (own >= 0 && !(s.records[3 * own + TOKEN] >= 0 && s.graph.spoken[s.records[3 * own + TOKEN]])) {
        own = s.records[3 * own + BEFORE];
      }
      const end = own >= 0 ? s.records[3 * own + END] : this.lastSpoken;
      if (end === this.paused || s.frame - end < this.pause) return false;
      this.paused = end;
      if (own >= 0) this.giveUpOthers(own);
      return true;
    }

    // Give up all live paths that do not go through a record.
    giveUpOthers(through) {
      const { records, record, scores, count } = this.search;
      const descends = new Uint8Array(count);
      for (let own = through; own < count; own++) {
        const before = records[3 * own + BEFORE];
        descends[own] = own === through || (before >= 0 && descends[before]) ? 1 : 0;
      }
      for (let u = 0; u < scores.length; u++) {
        if (scores[u] > -Infinity && (record[u] < 0 || !descends[record[u]])) scores[u] = -Infinity;
      }
      this.search.lookWhoLives();
    }

    // Return tokens that have become final, and forget the records that are no longer needed.
    committed() {
      const s = this.search;
      const common = this.commonRecord();
      const tokens = common > this.root ? s.tokensOf(common) : [];
      for (const token of tokens) if (token.spoken) this.lastSpoken = Math.max(this.lastSpoken, token.end);
      if (common > this.root || s.count > SPARE) {
        this.trim(common);
        this.root = Math.min(common, 0);
      }
      return tokens;
    }

    // The latest record that all live paths go through; -1 if there is none.
    commonRecord() {
      const { records, record, alive, living, count } = this.search;
      const marked = new Uint8Array(count);
      let paths = 0;
      for (let k = 0; k < living; k++) {
        const own = record[alive[k]];
        if (own < 0) return -1;
        if (!marked[own]) {
          marked[own] = 1;
          paths += 1;
        }
      }
      for (let own = count - 1; own >= 0; own--) {
        if (!marked[own]) continue;
        if (paths === 1) return own;
        const before = records[3 * own + BEFORE];
        if (before < 0) return -1;
        if (marked[before]) paths -= 1;
        marked[before] = 1;
      }
      return -1;
    }

    // Keep the records between `root` and the live paths, numbered anew. The root becomes record 0, without a token.
    trim(root) {
      const s = this.search;
      const { records, record, alive, living, count } = s;
      const kept = new Uint8Array(count);
      for (let k = 0; k < living; k++) if (record[alive[k]] >= 0) kept[record[alive[k]]] = 1;
      for (let own = count - 1; own > root; own--) {
        if (kept[own] && records[3 * own + BEFORE] >= 0) kept[records[3 * own + BEFORE]] = 1;
      }
      const number = new Int32Array(count).fill(-1);
      let found = 0;
      for (let own = Math.max(root, 0); own < count; own++) {
        if (!kept[own] && own !== root) continue;
        const before = records[3 * own + BEFORE];
        number[own] = found;
        records[3 * found + TOKEN] = own === root ? -1 : records[3 * own + TOKEN];
        records[3 * found + END] = records[3 * own + END];
        records[3 * found + BEFORE] = before >= 0 && own !== root ? number[before] : -1;
        found += 1;
      }
      for (let k = 0; k < living; k++) {
        const u = alive[k];
        record[u] = record[u] >= 0 ? number[record[u]] : -1;
      }
      s.count = found;
    }
  }

  function fromBase64(letters) {
    const text = atob(letters);
    const bytes = new Uint8Array(text.length);
    for (let k = 0; k < bytes.length; k++) bytes[k] = text.charCodeAt(k);
    return bytes;
  }

  // The numbers that `packed` in speech_payload.py wrote: planes of bytes, deflated, in base64.
  async function unpack({ type, length, bytes }) {
    const stream = new Blob([fromBase64(bytes)]).stream().pipeThrough(new DecompressionStream("deflate"));
    const planes = new Uint8Array(await new Response(stream).arrayBuffer());
    const whole = new Int32Array(length);
    for (let k = 0; k < length; k++) {
      whole[k] =
        planes[k] | (planes[length + k] << 8) | (planes[2 * length + k] << 16) | (planes[3 * length + k] << 24);
    }
    return type === "float" ? new Float32Array(whole.buffer) : whole;
  }

  // A decoder of a payload: phones or words from probabilities of states.
  class Decoder {
    constructor(graph, { priors, silent_states }, weights) {
      this.graph = graph;
      this.weights = weights;
      this.silentStates = silent_states;
      this.offsets = Float64Array.from(priors, (p) => weights.prior_exponent * Math.log(Math.max(p, SMALLEST)));
    }

    // The decoder `kind`, "phone_decoder" or "word_decoder", of a payload; null if it has none.
    static async of(payload, kind) {
      const found = payload[kind];
      if (found === null) return null;
      const names = Object.keys(found.arrays);
      const arrays = await Promise.all(names.map((name) => unpack(found.arrays[name])));
      const { start, tokens } = found;
      const parts = Object.fromEntries(names.map((name, k) => [name, arrays[k]]));
      const graph = new Graph({ ...parts, start, tokens, silences: payload.silences });
      return new Decoder(graph, payload, { ...found, beam: found.beam ?? Infinity, arrays: null });
    }

    // Scaled log probabilities of one frame for the search.
    emissions(probabilities) {
      const { offsets } = this;
      const found = new Float32Array(offsets.length);
      for (let k = 0; k < found.length; k++) {
        found[k] = Math.log(Math.max(probabilities[k], SMALLEST)) - offsets[k];
      }
      return found;
    }

    search(beam = this.weights.beam) {
      return new Search(this.graph, this.weights.language_weight, beam);
    }

    // A search that has taken no frame yet; pause: frames of silence after which what was spoken is final, or null.
    stream(pause = null) {
      return new CommittingSearch(this.search(), this.silentStates, pause);
    }

    // The tokens of a whole utterance without a beam, for one whose end the beam has lost.
    decodeWithoutBeam(frames) {
      const search = this.search(Infinity);
      for (const frame of frames) search.advance(this.emissions(frame));
      return search.best() ?? [];
    }
  }

  Object.assign(globalThis.echolearn.speech, { Graph, Search, CommittingSearch, Decoder, fromBase64 });
})();
