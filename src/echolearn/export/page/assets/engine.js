/* The meaning of a Plan on typed arrays: what runtime/_layers.py says in NumPy. Deep networks are in deep.js.

   echolearn.createModel(json) -> model
     model.inputs, .outputs, .units, .weights, .classes, .features, .perStep, .streams, .horizon, .json, .extra
     model.layers: [{units, leak, reverse}], of which model.stacks share the inputs
     model.run(X, {keep, resume}) -> {steps, rows, answers, states}   X: Float64Array (steps * inputs), row by row
     model.start({resume}) -> state                                   model.step(state, x) -> answers of this step
     model.encode(X, known) -> inputs of the network
     model.changed({leak, radius}) -> a model of one layer whose leaks and recurrent weights are multiplied by these
   Of a forecaster, the answer of a step is the next value; forecast(model, ...) in a closed loop is model.forecast.

   All numbers are float64. A float32 network rounds its inputs and weights, and so does this one; what it loses by
   rounding its states as well, this one keeps. */
"use strict";
globalThis.echolearn = globalThis.echolearn || {};
(() => {
  const KINDS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array };

  /** Return the numbers of a packed array: {values, shape}. Floats are always float64, so that loops see one type. */
  function unpack(packed) {
    if (packed === null || packed === undefined) return null;
    const text = atob(packed.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    const raw = new KINDS[packed.kind](bytes.buffer);
    const values = packed.kind === "f4" ? Float64Array.from(raw) : raw;
    return { values, shape: packed.shape };
  }

  const numbers = (packed) => (packed === null ? null : unpack(packed).values);

  /** Return the transpose (columns, rows) of a packed matrix (rows, columns). */
  function transposed(packed) {
    const { values, shape: [rows, columns] } = unpack(packed);
    const out = new Float64Array(values.length);
    for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) out[j * rows + i] = values[i * columns + j];
    return out;
  }

  /** Return a matrix (rows, columns) with its rows in blocks of four, column by column: the order of `addProduct`. */
  function blocked(M, rows, columns) {
    const out = new Float64Array(rows * columns);
    let p = 0, r = 0;
    for (; r + 3 < rows; r += 4) for (let j = 0; j < columns; j++) for (let k = 0; k < 4; k++) out[p++] = M[(r + k) * columns + j];
    out.set(M.subarray(r * columns), p);
    return out;
  }

  /** out[r] += M[r, :] . x[from : from + columns], for a `blocked` matrix M (rows, columns). */
  function addProduct(M, rows, columns, x, from, out) {
    const end = from + columns;
    let r = 0, p = 0;
    for (; r + 3 < rows; r += 4) {
      let a = 0, b = 0, c = 0, d = 0;
      for (let j = from; j < end; j++, p += 4) {
        const v = x[j];
        a += M[p] * v; b += M[p + 1] * v; c += M[p + 2] * v; d += M[p + 3] * v;
      }
      out[r] += a; out[r + 1] += b; out[r + 2] += c; out[r + 3] += d;
    }
    for (; r < rows; r++) {
      let a = 0;
      for (let j = from; j < end; j++) a += M[p++] * x[j];
      out[r] += a;
    }
  }

  /** As `addProduct`, with sums that are rounded to float32 after every term, as float32 networks have them. */
  function addRoundedProduct(M, rows, columns, x, from, out) {
    for (let r = 0; r < rows; r++) {
      const whole = r < rows - (rows % 4), p = whole ? (r - (r % 4)) * columns + (r % 4) : r * columns, by = whole ? 4 : 1;
      let a = 0;
      for (let j = 0; j < columns; j++) a = Math.fround(a + M[p + by * j] * x[from + j]);
      out[r] = Math.fround(out[r] + a);
    }
  }

  /** out[i] += row i of a matrix in compressed rows . h. */
  function addSparse(indptr, indices, data, h, out) {
    for (let i = 0, p = 0; i < out.length; i++) {
      let a = 0;
      for (const end = indptr[i + 1]; p < end; p++) a += data[p] * h[indices[p]];
      out[i] += a;
    }
  }

  /** h += leak * (f(z) - h), in place. */
  function update(activation, z, leak, h) {
    const n = h.length;
    if (activation === "tanh") for (let i = 0; i < n; i++) z[i] = Math.tanh(z[i]);
    else if (activation === "sigmoid") for (let i = 0; i < n; i++) z[i] = 0.5 + 0.5 * Math.tanh(0.5 * z[i]);
    else if (activation === "relu") for (let i = 0; i < n; i++) z[i] = z[i] > 0 ? z[i] : z[i] === z[i] ? 0 : NaN;
    else if (activation !== "identity") throw new Error(`The activation ${activation} is unknown to this page.`);
    for (let i = 0; i < n; i++) h[i] += leak[i] * (z[i] - h[i]);
  }

  function softmax(y) {
    let largest = -Infinity, sum = 0;
    for (let k = 0; k < y.length; k++) if (y[k] > largest) largest = y[k];
    for (let k = 0; k < y.length; k++) sum += y[k] = Math.exp(y[k] - largest);
    for (let k = 0; k < y.length; k++) y[k] /= sum;
    return y;
  }

  /** Units of a layer that run in the same direction: ids, and their weights with columns counted within the group. */
  function makeGroup(layer, ids) {
    const { W, W_fb, inputs, outputs } = layer;
    const n = ids.length, place = new Int32Array(layer.units).fill(-1);
    ids.forEach((id, i) => { place[id] = i; });
    const group = {
      ids, W: new Float64Array(n * inputs), W_fb: W_fb && new Float64Array(n * outputs),
      bias: new Float64Array(n), leak: new Float64Array(n), first: new Float64Array(n),
      indptr: new Int32Array(n + 1), indices: null, data: null, z: new Float64Array(n),
    };
    const indices = [], data = [];
    ids.forEach((id, i) => {
      group.W.set(W.subarray(id * inputs, (id + 1) * inputs), i * inputs);
      if (W_fb) group.W_fb.set(W_fb.subarray(id * outputs, (id + 1) * outputs), i * outputs);
      group.bias[i] = layer.bias[id];
      group.leak[i] = layer.leak[id];
      group.first[i] = layer.initial[id];
      for (let p = layer.indptr[id]; p < layer.indptr[id + 1]; p++) {
        if (place[layer.indices[p]] < 0) continue;
        indices.push(place[layer.indices[p]]);
        data.push(layer.data[p]);
      }
      group.indptr[i + 1] = data.length;
    });
    group.W = blocked(group.W, n, inputs);
    if (W_fb) group.W_fb = blocked(group.W_fb, n, outputs);
    group.indices = Int32Array.from(indices);
    group.data = Float64Array.from(data);
    return group;
  }

  /** Return a layer with matrices transposed to rows of units or outputs; readouts are blocked. */
  function makeLayer(json, change) {
    const bias = numbers(json.bias), backward = numbers(json.backward), intercept = numbers(json.intercept);
    const clipped = (a) => Math.min(1, Math.max(1e-4, a));
    const leak = numbers(json.leak);
    const layer = {
      units: bias.length, inputs: json.W.shape[0], outputs: intercept.length,
      W: transposed(json.W), W_fb: json.W_fb && transposed(json.W_fb), bias, backward, intercept,
      leak: change.leak === 1 ? leak : leak.map((a) => clipped(a * change.leak)),
      initial: numbers(json.initial_state), activation: json.activation,
      indptr: numbers(json.W_rec.indptr), indices: numbers(json.W_rec.indices),
      data: numbers(json.W_rec.data).map((w) => w * change.radius),
      U: blocked(transposed(json.U_states), intercept.length, json.U_states.shape[0]), seen: json.U_states.shape[0],
      U_inputs: blocked(transposed(json.U_inputs), intercept.length, json.U_inputs.shape[0]), seenInputs: json.U_inputs.shape[0],
      softmax: json.softmax, radius: json.spectral_radius * change.radius,
    };
    const all = Array.from(backward, (_, i) => i);
    layer.forward = makeGroup(layer, all.filter((i) => !backward[i]));
    layer.reverse = backward.some(Boolean) ? makeGroup(layer, all.filter((i) => backward[i])) : null;
    return layer;
  }

  /** One step of eq. 1 for a group of units, in place: h becomes the state after inputs x[from ...]. */
  function advance(layer, group, h, x, from, fedBack) {
    const z = group.z;
    z.set(group.bias);
    (layer.rounded ? addRoundedProduct : addProduct)(group.W, z.length, layer.inputs, x, from, z);
    if (fedBack) addProduct(group.W_fb, z.length, layer.outputs, fedBack, 0, z);
    addSparse(group.indptr, group.indices, group.data, h, z);
    update(layer.activation, z, group.leak, h);
  }

  /** y = [h x] U + intercept; h (seen,) from `at` on, x (seenInputs,) from `from` on. */
  function readout(layer, h, at, x, from, y) {
    y.set(layer.intercept);
    addProduct(layer.U, layer.outputs, layer.seen, h, at, y);
    if (layer.seenInputs) addProduct(layer.U_inputs, layer.outputs, layer.seenInputs, x, from, y);
    return y;
  }

  /** Return the states (steps, units) of a layer; start: {h, y} of a layer that runs forward, left where it ends. */
  function layerStates(layer, x, steps, start) {
    const H = new Float64Array(steps * layer.units), N = layer.units;
    for (const group of [layer.forward, layer.reverse]) {
      if (!group) continue;
      const h = start && group === layer.forward ? start.h : Float64Array.from(group.first);
      const fedBack = layer.W_fb ? (start ? start.y : new Float64Array(layer.outputs)) : null;
      const whole = group.ids.length === N;
      for (let i = 0; i < steps; i++) {
        const t = group === layer.reverse ? steps - 1 - i : i;
        advance(layer, group, h, x, t * layer.inputs, fedBack);
        if (whole) H.set(h, t * N);
        else for (let k = 0; k < h.length; k++) H[t * N + group.ids[k]] = h[k];
        if (fedBack) {
          readout(layer, h, 0, x, t * layer.inputs, fedBack);
          if (layer.softmax) softmax(fedBack);
        }
      }
    }
    return H;
  }

  /** Return the outputs (steps, outputs) of a layer for all its states. */
  function layerOutputs(layer, H, x, steps) {
    const Y = new Float64Array(steps * layer.outputs), y = new Float64Array(layer.outputs);
    for (let t = 0; t < steps; t++) Y.set(readout(layer, H, t * layer.units, x, t * layer.inputs, y), t * layer.outputs);
    return Y;
  }

  /** Return the row of statistics of a summary of states (steps, N), in the order that the readout has. */
  function summaryRow(layer, summary, H, steps, single) {
    const N = layer.units, w = summary.washout, n = steps - w, { thresholds } = summary, Q = thresholds.length / N;
    const row = new Float64Array(N * (5 + Q));
    for (let k = 0; k < N; k++) {
      let sum = 0, squares = 0, high = -Infinity, low = Infinity;
      for (let t = w; t < steps; t++) {
        const s = H[t * N + k];
        sum += s; squares += s * s;
        if (s > high) high = s;
        if (s < low) low = s;
        for (let q = 0; q < Q; q++) {
          const limit = single ? Math.fround(thresholds[q * N + k]) : thresholds[q * N + k];
          row[(5 + q) * N + k] += Math.min(Math.max((s - limit) / summary.width + 0.5, 0), 1) / n;
        }
      }
      row[k] = sum / n;
      row[N + k] = Math.sqrt(Math.max(squares / n - (sum / n) ** 2, 0));
      row[2 * N + k] = high;
      row[3 * N + k] = low;
      row[4 * N + k] = H[(layer.backward[k] ? 0 : steps - 1) * N + k];
    }
    return row;
  }

  /** Return x_{t-d} and x_{t-d} - x_{t-d-1} for all delays d side by side; before the first step, the first frame. */
  function delayed(x, n, steps, delays, single) {
    const out = new Float64Array(2 * steps * n * delays.length);
    for (let t = 0, p = 0; t < steps; t++) {
      for (const d of delays) {
        const from = Math.max(t - d, 0) * n, before = Math.max(t - d - 1, 0) * n;
        for (let k = 0; k < n; k++) out[p++] = x[from + k];
        for (let k = 0; k < n; k++) {
          const change = x[from + k] - x[before + k];
          out[p++] = single ? Math.fround(change) : change;
        }
      }
    }
    return out;
  }

  /** A network of one layer. Networks have start(end) -> states, step(states, x) -> outputs of a step (reused), and
      run(x, steps, states) -> {Y, H: states of each layer}; states: [{h, y}] of each layer, which advance. */
  function layerNetwork(json, { summary, single, change }) {
    const layer = makeLayer(json, change), out = new Float64Array(layer.outputs);
    // The readout of a summary may weigh the last digits of a state, which large input weights leave to rounding.
    layer.rounded = single && summary !== null;
    return {
      layers: [layer], stacks: 1, outputs: layer.outputs, perStep: !summary, backward: Boolean(layer.reverse),
      weights: layer.data.length + layer.W.length + layer.U.length + layer.U_inputs.length,

      start: (end) => [{
        h: Float64Array.from(end ? end.state : layer.forward.first),
        y: layer.W_fb && end && end.fedBack ? Float64Array.from(end.fedBack) : new Float64Array(layer.outputs),
      }],

      step([{ h, y }], x) {
        advance(layer, layer.forward, h, x, 0, layer.W_fb ? y : null);
        readout(layer, h, 0, x, 0, out);
        if (layer.W_fb) {
          y.set(out);
          if (layer.softmax) softmax(y);
        }
        return out;
      },

      run(x, steps, states) {
        const u = summary ? delayed(x, x.length / steps, steps, summary.delays, single) : x;
        const H = layerStates(layer, u, steps, states && states[0]);
        const Y = summary
          ? readout(layer, summaryRow(layer, summary, H, steps, single), 0, u, 0, new Float64Array(layer.outputs))
          : layerOutputs(layer, H, u, steps);
        return { Y, H: [H] };
      },
    };
  }

  /** Turn outputs y into probabilities or values, in place. */
  function decode(answer, y) {
    const { kind, scale, mean } = answer, n = y.length;
    if (kind === "softmax") return softmax(y);
    if (kind === "values") {
      for (let k = 0; k < n; k++) y[k] = y[k] * scale[k] + mean[k];
    } else if (kind === "independent") {
      for (let k = 0; k < n; k++) y[k] = 1 / (1 + Math.exp(-Math.min(500, Math.max(-500, scale[k] * (y[k] - 0.5)))));
    } else { // the distribution that is nearest to y
      const ordered = Float64Array.from(y).sort().reverse();
      let sum = 0, amount = ordered[0] - 1;
      for (let k = 0; k < n; k++) {
        sum += ordered[k];
        if (ordered[k] > (sum - 1) / (k + 1)) amount = (sum - 1) / (k + 1);
      }
      let total = 0;
      for (let k = 0; k < n; k++) total += y[k] = Math.max(y[k] - amount, 0);
      for (let k = 0; k < n; k++) y[k] /= total;
    }
    return y;
  }

  /** Return an operation on frames: {inputs, outputs, apply(x, from, out)}; `known` is the memory of a carried gap. */
  function makeOperation(json) {
    if (json.kind === "fill") {
      const values = numbers(json.values), flagged = numbers(json.flagged), n = values.length;
      const flags = Array.from(flagged, (f, k) => (f ? k : -1)).filter((k) => k >= 0);
      return {
        kind: "fill", carry: json.carry, values, inputs: n, outputs: n + flags.length,
        apply(x, from, known) {
          const out = new Float64Array(n + flags.length);
          flags.forEach((k, i) => { out[n + i] = Number.isNaN(x[from + k]) ? 1 : 0; });
          for (let k = 0; k < n; k++) {
            const v = x[from + k];
            out[k] = Number.isNaN(v) ? (json.carry ? known[k] : values[k]) : v;
            if (json.carry) known[k] = out[k];
          }
          return out;
        },
      };
    }
    if (json.kind === "standardize") {
      const mean = numbers(json.mean), scale = numbers(json.scale), n = mean.length;
      return { kind: json.kind, mean, scale, inputs: n, outputs: n,
        apply(x, from) {
          const out = new Float64Array(n);
          for (let k = 0; k < n; k++) out[k] = (x[from + k] - mean[k]) / scale[k];
          return out;
        } };
    }
    if (json.kind === "clip") {
      const low = numbers(json.low), high = numbers(json.high), n = low.length;
      return { kind: json.kind, inputs: n, outputs: n,
        apply: (x, from) => low.map((l, k) => Math.min(Math.max(x[from + k], l), high[k])) };
    }
    const [n, m] = json.matrix.shape, M = blocked(transposed(json.matrix), m, n);
    return { kind: json.kind, inputs: n, outputs: m,
      apply(x, from) { const out = new Float64Array(m); addProduct(M, m, n, x, from, out); return out; } };
  }

  function createModel(json, change = { leak: 1, radius: 1 }) {
    const single = json.precision === "float32";
    const operations = json.inputs.map(makeOperation);
    const carrying = operations.find((o) => o.carry) || null;
    const answer = { ...json.answer, mean: numbers(json.answer.mean), scale: numbers(json.answer.scale) };
    const summary = json.summary && { ...json.summary, thresholds: numbers(json.summary.thresholds) };
    const end = json.resumption && {
      state: numbers(json.resumption.state), fedBack: numbers(json.resumption.fed_back), known: numbers(json.resumption.known),
    };
    const width = operations.length ? operations[operations.length - 1].outputs : json.n_features;
    const network = json.network.stacks
      ? globalThis.echolearn.deepNetwork(json.network) : layerNetwork(json.network, { summary, single, change });
    const { layers, perStep, outputs, backward } = network, streams = !backward && perStep;

    function known(resume) {
      if (!carrying) return null;
      const from = resume && end ? end.known : null;
      return carrying.values.map((v, k) => (from && !Number.isNaN(from[k]) ? from[k] : v));
    }

    function encodeFrame(x, from, memory) {
      let v = x, at = from;
      for (const operation of operations) { v = operation.apply(v, at, memory); at = 0; }
      const out = v === x ? x.slice(from, from + width) : v;
      if (single) for (let k = 0; k < out.length; k++) out[k] = Math.fround(out[k]);
      return out;
    }

    function encode(X, memory = known(false)) {
      const steps = X.length / json.n_features, out = new Float64Array(steps * width);
      for (let t = 0; t < steps; t++) out.set(encodeFrame(X, t * json.n_features, memory), t * width);
      return out;
    }

    /** A state from which steps may follow; resume: where the one training series ended. */
    function start({ resume = false } = {}) {
      if (resume && !end) throw new Error("This model does not know where its training series ended.");
      return {
        layers: network.start(resume ? end : null),
        known: known(resume),
        value: resume && json.horizon !== null && end.fedBack ? Float64Array.from(end.fedBack) : null,
      };
    }

    const copy = (state) => ({
      ...state, layers: state.layers.map(({ h, y }) => ({ h: h.slice(), y: y.slice() })), known: state.known && state.known.slice(),
      value: state.value && state.value.slice(),
    });

    /** Advance by one step with the inputs u of the network; return its outputs (reused). */
    const stepInputs = (state, u) => network.step(state.layers, u);

    /** Return the answer to one frame; the state advances. The array is used again by the next step. */
    function step(state, x) {
      if (!streams) throw new Error("This model needs the end of a sequence before it answers: use run.");
      return decode(answer, stepInputs(state, encodeFrame(x instanceof Float64Array ? x : Float64Array.from(x), 0, state.known)));
    }

    /** Return the answers to a whole sequence, and with `keep` the states of every layer. */
    function run(X, { keep = false, resume = false } = {}) {
      const steps = X.length / json.n_features;
      if (steps < 1 || steps !== Math.floor(steps)) throw new Error("A sequence needs at least one whole frame.");
      if (summary && steps <= summary.washout) {
        throw new Error(`This sequence has ${steps} steps; the model leaves out the first ${summary.washout} and needs more.`);
      }
      const from = resume && !backward ? start({ resume }) : null;
      const { Y, H } = network.run(encode(X, known(resume)), steps, from && from.layers), rows = perStep ? steps : 1;
      for (let t = 0; t < rows; t++) decode(answer, Y.subarray(t * outputs, (t + 1) * outputs));
      return { steps, rows, answers: Y, states: keep ? H : [] };
    }

    /** Of a forecaster: advance a state whose `value` is the newest one, standardised; return the next value.

        shock (outputs,): added to the next value before it is fed back, in standard deviations. exogenous: the
        standardised inputs of the next step, zeros if left out. */
    function next(state, shock = null, exogenous = null) {
      const dims = json.horizon, u = new Float64Array(width);
      u.set(state.value);
      if (exogenous) u.set(exogenous, dims);
      if (single) for (let k = 0; k < width; k++) u[k] = Math.fround(u[k]);
      const out = stepInputs(state, u);
      for (let k = 0; k < dims; k++) state.value[k] = out[k] + (shock ? shock[k] : 0);
      return state.value.map((v, k) => v * answer.scale[k] + answer.mean[k]);
    }

    /** Of a forecaster: return the state after known values X, ready for `next`; without values, where training ended. */
    function warm(X) {
      if (!X.length) return start({ resume: true });
      const state = start(), u = encode(X), steps = X.length / json.n_features, dims = json.horizon;
      for (let t = 0; t < steps - 1; t++) {
        const row = u.slice(t * width, (t + 1) * width); // [x_t, e_{t+1}]
        row.set(u.subarray((t + 1) * width + dims, (t + 2) * width), dims);
        stepInputs(state, row);
      }
      state.value = u.slice((steps - 1) * width, (steps - 1) * width + json.horizon);
      return state;
    }

    /** Of a forecaster: return the values (steps, outputs) that follow X. */
    function forecast(X, steps) {
      const state = warm(X), out = new Float64Array(steps * outputs);
      for (let t = 0; t < steps; t++) out.set(next(state), t * outputs);
      return out;
    }

    return {
      json, name: json.name, extra: json.extra || {}, estimator: json.estimator, precision: json.precision,
      inputs: json.n_features, outputs, units: layers.reduce((sum, layer) => sum + layer.units, 0), weights: network.weights,
      classes: answer.names, features: json.feature_names, kind: answer.kind, perStep, streams, stacks: network.stacks,
      horizon: json.horizon, resumable: Boolean(end), layers, operations, answer, summary, width,
      encode, start, copy, step, run, stepInputs, next, warm, forecast,
      changed: (to) => createModel(json, { leak: to.leak === undefined ? 1 : to.leak, radius: to.radius === undefined ? 1 : to.radius }),
    };
  }

  Object.assign(globalThis.echolearn, { createModel, unpack, softmax, arithmetic: { numbers, transposed, blocked, addProduct } });
})();
