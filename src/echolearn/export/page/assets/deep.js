/* Deep networks on typed arrays: stacks of layers whose units turn in pairs; reservoir/_deep.py has the equations.

   echolearn.deepNetwork(json) -> a network as `layerNetwork` of engine.js returns it */
"use strict";
(() => {
  const { numbers, transposed, blocked, addProduct } = globalThis.echolearn.arithmetic;
  const RMS_EPSILON = 1e-5; // added to mean squares before their root

  /** Return f(x, from, out): out = bias + matrix' x[from ...]. */
  function makeAffine(matrix, bias) {
    const [rows, columns] = matrix.shape, M = blocked(transposed(matrix), columns, rows), b = numbers(bias);
    return (x, from, out) => {
      if (b) out.set(b);
      else out.fill(0);
      addProduct(M, columns, rows, x, from, out);
      return out;
    };
  }

  /** out = x / rms(x), of the numbers from `at` on. */
  function normalize(x, at, out) {
    let sum = 0;
    for (let c = 0; c < out.length; c++) sum += x[at + c] * x[at + c];
    const scale = 1 / Math.sqrt(sum / out.length + RMS_EPSILON);
    for (let c = 0; c < out.length; c++) out[c] = x[at + c] * scale;
    return out;
  }

  /** out = relu(x + bias), of the numbers from `at` on; NaN stays NaN. */
  function rectify(x, at, bias, out) {
    for (let c = 0; c < out.length; c++) {
      const v = x[at + c] + bias[c];
      out[c] = v > 0 ? v : v === v ? 0 : NaN;
    }
    return out;
  }

  /** A layer of pairs of units (c, m + c), of which the last ones may run backward. */
  function makeBlock(json, backwardPairs) {
    const re = numbers(json.re), im = numbers(json.im), gain = numbers(json.gain), b = numbers(json.b);
    const m = re.length, C = 2 * m, drive = makeAffine(json.W_in, null), added = makeAffine(json.W_out, json.b_out);
    const z = new Float64Array(C), u = new Float64Array(C);

    /** The pairs from `begin` to `end` take one step: h becomes their states after the drive u[at ...]. */
    function turn(h, u, at, begin, end) {
      for (let c = begin; c < end; c++) {
        const x = h[c], y = h[m + c];
        h[c] = re[c] * x - im[c] * y + gain[c] * u[at + c];
        h[m + c] = im[c] * x + re[c] * y + gain[c] * u[at + m + c];
      }
    }

    /** x[at ...] += what the layer adds for the states h[from ...]. */
    function add(x, at, h, from) {
      const o = added(rectify(h, from, b, z), 0, u);
      for (let c = 0; c < C; c++) x[at + c] += o[c];
    }

    function step(x, h) {
      turn(h, drive(normalize(x, 0, z), 0, u), 0, 0, m);
      add(x, 0, h, 0);
    }

    /** Return the states (steps, C) over x (steps, C), to which the layer adds; h: the states before, which advance. */
    function run(x, steps, h) {
      const H = new Float64Array(steps * C), forward = m - backwardPairs;
      for (let t = 0; t < steps; t++) H.set(drive(normalize(x, t * C, z), 0, u), t * C);
      for (const [begin, end] of [[0, forward], [forward, m]]) {
        for (let i = 0; begin < end && i < steps; i++) {
          const at = (begin === forward ? steps - 1 - i : i) * C;
          turn(h, H, at, begin, end);
          for (let c = begin; c < end; c++) { H[at + c] = h[c]; H[at + m + c] = h[m + c]; }
        }
      }
      for (let t = 0; t < steps; t++) add(x, t * C, H, t * C);
      return H;
    }

    return { units: C, leak: Float64Array.from([...gain, ...gain]), reverse: backwardPairs > 0, step, run };
  }

  function makeStack(json) {
    const c = numbers(json.c), C = c.length, n = json.W_0.shape[0], first = makeAffine(json.W_0, json.b_0);
    const blocks = json.blocks.map((block) => makeBlock(block, json.backward_pairs)), z = new Float64Array(C), x = new Float64Array(C);

    /** Write the features of one frame u into q; the states advance. */
    function step(u, states, q) {
      first(u, 0, x);
      blocks.forEach((block, i) => block.step(x, states[i].h));
      rectify(normalize(x, 0, z), 0, c, q);
    }

    /** Return the states of every layer over the frames u, and write the features of frame t into the array q(t). */
    function run(u, steps, states, q) {
      const X = new Float64Array(steps * C);
      for (let t = 0; t < steps; t++) X.set(first(u, t * n, x), t * C);
      const H = blocks.map((block, i) => block.run(X, steps, states[i].h));
      for (let t = 0; t < steps; t++) rectify(normalize(X, t * C, z), 0, c, q(t));
      return H;
    }

    return { blocks, units: C, step, run };
  }

  /** Return the number of weights; the turns of a pair are a leak and an angle, from which all their numbers follow. */
  function countWeights(json) {
    const size = (packed) => packed.shape.reduce((a, b) => a * b, 1);
    const block = ({ W_in, re, im, b, W_out, b_out }) => [W_in, re, im, b, W_out, b_out];
    const arrays = json.stacks.flatMap(({ W_0, b_0, c, blocks }) => [W_0, b_0, c, ...blocks.flatMap(block)]);
    return [...arrays, json.U, json.intercept].reduce((sum, packed) => sum + size(packed), 0);
  }

  function deepNetwork(json) {
    const stacks = json.stacks.map(makeStack), layers = stacks.flatMap(({ blocks }) => blocks);
    const width = stacks.reduce((sum, stack) => sum + stack.units, 0), outputs = json.intercept.shape[0];
    const readout = makeAffine(json.U, json.intercept), q = new Float64Array(width), y = new Float64Array(outputs);

    /** Call f(stack, the states of its layers, the place of its first feature) for every stack. */
    function each(states, f) {
      let layer = 0, at = 0;
      for (const stack of stacks) {
        f(stack, states.slice(layer, layer + stack.blocks.length), at);
        layer += stack.blocks.length;
        at += stack.units;
      }
    }

    function start(end) {
      let at = 0;
      return layers.map(({ units }) => {
        const h = end ? Float64Array.from(end.state.subarray(at, at + units)) : new Float64Array(units);
        at += units;
        return { h, y: new Float64Array(0) };
      });
    }

    function step(states, u) {
      each(states, (stack, own, at) => stack.step(u, own, q.subarray(at, at + stack.units)));
      return readout(q, 0, y);
    }

    function run(u, steps, states) {
      const Q = new Float64Array(steps * width), H = [], rows = json.pooled ? 1 : steps;
      each(states || start(null), (stack, own, at) => {
        H.push(...stack.run(u, steps, own, (t) => Q.subarray(t * width + at, t * width + at + stack.units)));
      });
      const seen = json.pooled ? meanOf(Q, steps, width) : Q, Y = new Float64Array(rows * outputs);
      for (let t = 0; t < rows; t++) Y.set(readout(seen, t * width, y), t * outputs);
      return { Y, H };
    }

    return {
      layers, stacks: stacks.length, outputs, perStep: !json.pooled, backward: layers.some(({ reverse }) => reverse),
      weights: countWeights(json), start, step, run,
    };
  }

  /** Return the mean row of Q (steps, width). */
  function meanOf(Q, steps, width) {
    const mean = new Float64Array(width);
    for (let i = 0; i < Q.length; i++) mean[i % width] += Q[i] / steps;
    return mean;
  }

  Object.assign(globalThis.echolearn, { deepNetwork });
})();
