/* The features of speech, as echolearn.speech computes them: samples -> 13 MFCC -> differences -> normalised -> context.
   Everything takes pieces of any size and gives the same numbers however a recording is cut.

   new echolearn.speech.Resampler(rate) -> .push(samples), .finish(): samples at 16 kHz
   new echolearn.speech.FeatureStream(recipe, onSpectrum) -> .push(samples at 16 kHz, 16-bit scale), .finish(): rows */
"use strict";
globalThis.echolearn.speech = globalThis.echolearn.speech || {};
(() => {
  const RATE = 16000;
  const FULL_SCALE = 32768;
  const LOWEST_RATE = 8000;
  const HIGHEST_RATE = 192000;

  function greatestCommonDivisor(a, b) {
    return b === 0 ? a : greatestCommonDivisor(b, a % b);
  }

  // I0, the modified Bessel function of order zero, by its power series.
  function bessel(x) {
    let term = 1;
    let sum = 1;
    for (let k = 1; term > 1e-18 * sum; k++) {
      term *= (x / (2 * k)) ** 2;
      sum += term;
    }
    return sum;
  }

  // A low-pass of 2 half + 1 taps that cuts off at `cutoff` (1 is half the rate): a sinc under a Kaiser window of
  // beta 5, with a sum of 1. These are the taps of scipy.signal.firwin and resample_poly.
  function lowPass(half, cutoff) {
    const taps = new Float64Array(2 * half + 1);
    let sum = 0;
    for (let k = 0; k < taps.length; k++) {
      const t = k - half;
      const sinc = t === 0 ? 1 : Math.sin(Math.PI * cutoff * t) / (Math.PI * cutoff * t);
      taps[k] = sinc * bessel(5 * Math.sqrt(Math.max(0, 1 - (t / half) ** 2)));
      sum += taps[k];
    }
    return taps.map((tap) => tap / sum);
  }

  // Resamples to 16 kHz piece by piece: a polyphase low-pass of ten periods of the slower rate on each side.
  class Resampler {
    constructor(rate) {
      if (!(rate >= LOWEST_RATE && rate <= HIGHEST_RATE)) {
        throw new Error(`The sound has ${rate} samples per second; expected 8,000 to 192,000.`);
      }
      const common = greatestCommonDivisor(rate, RATE);
      this.up = RATE / common;
      this.down = rate / common;
      this.same = rate === RATE;
      this.half = 10 * Math.max(this.up, this.down);
      if (!this.same) {
        this.taps = Float32Array.from(lowPass(this.half, 1 / Math.max(this.up, this.down)), (tap) => tap * this.up);
      }
      this.kept = new Float32Array(0);
      this.base = 0; // the number of the first sample that is kept
      this.given = 0; // outputs that were returned
    }

    push(samples) {
      if (this.same) return samples;
      this.kept = joined(this.kept, samples);
      const total = this.base + this.kept.length;
      return this.upTo(Math.floor(((total - 1) * this.up - this.half) / this.down) + 1);
    }

    finish() {
      if (this.same) return new Float32Array(0);
      const total = this.base + this.kept.length;
      return this.upTo(Math.ceil((total * this.up) / this.down));
    }

    // Output n is the sum of taps[half + n down - i up] x[i] over all inputs i.
    upTo(end) {
      if (end <= this.given) return new Float32Array(0);
      const { taps, kept, base, up, down, half } = this;
      const found = new Float32Array(end - this.given);
      const last = base + kept.length - 1;
      for (let n = this.given; n < end; n++) {
        const middle = n * down;
        const first = Math.max(base, Math.ceil((middle - half) / up));
        const stop = Math.min(last, Math.floor((middle + half) / up));
        let sum = 0;
        for (let i = first; i <= stop; i++) sum += taps[half + middle - i * up] * kept[i - base];
        found[n - this.given] = sum;
      }
      this.given = end;
      const needed = Math.min(last + 1, Math.max(base, Math.ceil((end * down - half) / up)));
      this.kept = kept.slice(needed - base);
      this.base = needed;
      return found;
    }
  }

  function joined(a, b) {
    const both = new Float32Array(a.length + b.length);
    both.set(a);
    both.set(b, a.length);
    return both;
  }

  // The power spectrum of real windows of n samples, n a power of two: one complex transform of half the size.
  class Spectrum {
    constructor(n) {
      const half = n / 2;
      this.half = half;
      this.re = new Float64Array(half);
      this.im = new Float64Array(half);
      this.cos = Float64Array.from({ length: half }, (_, k) => Math.cos((2 * Math.PI * k) / n));
      this.sin = Float64Array.from({ length: half }, (_, k) => Math.sin((2 * Math.PI * k) / n));
      const bits = Math.log2(half);
      this.place = Uint16Array.from({ length: half }, (_, k) => {
        let reversed = 0;
        for (let b = 0; b < bits; b++) reversed |= ((k >> b) & 1) << (bits - 1 - b);
        return reversed;
      });
    }

    // Write the powers of the frequencies 0 to n/2 to `power`, of length n/2 + 1.
    of(frame, power) {
      const { half, re, im, cos, sin, place } = this;
      for (let k = 0; k < half; k++) {
        re[place[k]] = frame[2 * k];
        im[place[k]] = frame[2 * k + 1];
      }
      for (let size = 2; size <= half; size *= 2) {
        const reach = size / 2;
        const step = (2 * half) / size;
        for (let start = 0; start < half; start += size) {
          for (let k = 0; k < reach; k++) {
            const a = start + k;
            const b = a + reach;
            const c = cos[k * step];
            const s = sin[k * step];
            const x = re[b] * c + im[b] * s;
            const y = im[b] * c - re[b] * s;
            re[b] = re[a] - x;
            im[b] = im[a] - y;
            re[a] += x;
            im[a] += y;
          }
        }
      }
      power[0] = (re[0] + im[0]) ** 2;
      power[half] = (re[0] - im[0]) ** 2;
      for (let k = 1; k < half; k++) {
        const j = half - k;
        const evenRe = (re[k] + re[j]) / 2;
        const evenIm = (im[k] - im[j]) / 2;
        const oddRe = (im[k] + im[j]) / 2;
        const oddIm = (re[j] - re[k]) / 2;
        const x = evenRe + cos[k] * oddRe + sin[k] * oddIm;
        const y = evenIm + cos[k] * oddIm - sin[k] * oddRe;
        power[k] = x * x + y * y;
      }
    }
  }

  // MFCC of one window after another, by the settings of a page's payload (`mfcc` in speech_payload.py).
  class Cepstra {
    constructor(settings) {
      this.settings = settings;
      const { window: n, fft } = settings;
      this.frame = new Float64Array(fft);
      this.power = new Float64Array(fft / 2 + 1);
      this.spectrum = new Spectrum(fft);
      // Kaldi's "povey" window: a Hann window to the power of 0.85.
      this.shape = Float64Array.from(
        { length: n },
        (_, k) => (0.5 - 0.5 * Math.cos((2 * Math.PI * k) / (n - 1))) ** settings.window_power,
      );
      this.bands = melBands(settings);
      this.logs = new Float64Array(settings.bands);
      this.cosines = cosineTransform(settings);
    }

    // Return the energy and the cepstra of the window of samples from `start` on; `power` is its spectrum then.
    of(samples, start) {
      const { window: n, emphasis, floor, cepstra, smallest } = this.settings;
      const { frame, shape, power, bands, logs, cosines } = this;
      let mean = 0;
      for (let k = 0; k < n; k++) mean += samples[start + k];
      mean /= n;
      let energy = 0;
      for (let k = 0; k < n; k++) {
        frame[k] = samples[start + k] - mean;
        energy += frame[k] * frame[k];
      }
      for (let k = n - 1; k > 0; k--) frame[k] = (frame[k] - emphasis * frame[k - 1]) * shape[k];
      frame[0] = (frame[0] - emphasis * frame[0]) * shape[0];
      frame.fill(0, n);
      this.spectrum.of(frame, power);
      for (let b = 0; b < bands.length; b++) {
        const { first, weights } = bands[b];
        let sum = 0;
        for (let k = 0; k < weights.length; k++) sum += weights[k] * power[first + k];
        logs[b] = Math.log(Math.max(sum, smallest));
      }
      const row = new Float32Array(cepstra);
      row[0] = Math.max(Math.log(Math.max(energy, smallest)), Math.log(floor));
      for (let c = 1; c < cepstra; c++) {
        let sum = 0;
        for (let b = 0; b < logs.length; b++) sum += cosines[c * logs.length + b] * logs[b];
        row[c] = sum;
      }
      return row;
    }
  }

  // Triangles of equal width on the mel scale 1127 ln(1 + f / 700), over the frequencies below half the rate.
  function melBands({ bands, lowest, rate, fft }) {
    const mel = (f) => 1127 * Math.log(1 + f / 700);
    const low = mel(lowest);
    const width = (mel(rate / 2) - low) / (bands + 1);
    const found = [];
    for (let b = 0; b < bands; b++) {
      const left = low + b * width;
      const weights = [];
      let first = -1;
      for (let k = 0; k < fft / 2; k++) {
        const place = mel((k * rate) / fft);
        if (place > left && place < left + 2 * width) {
          if (first < 0) first = k;
          weights.push(place <= left + width ? (place - left) / width : (left + 2 * width - place) / width);
        }
      }
      found.push({ first: Math.max(first, 0), weights: Float64Array.from(weights) });
    }
    return found;
  }

  // Rows of the cosine transform from log bands to cepstra, liftered.
  function cosineTransform({ bands, cepstra, lifter }) {
    const rows = new Float64Array(cepstra * bands);
    for (let c = 0; c < cepstra; c++) {
      const lifted = 1 + (lifter / 2) * Math.sin((Math.PI * c) / lifter);
      for (let b = 0; b < bands; b++) {
        rows[c * bands + b] = Math.sqrt(2 / bands) * Math.cos((Math.PI / bands) * (b + 0.5) * c) * lifted;
      }
    }
    return rows;
  }

  // Applies a function of a frame and `spread` neighbours on each side to frames as they come; the first and the last
  // frame are repeated beyond the ends. The function is given the rows of a window, oldest first.
  class Neighbours {
    constructor(spread, apply) {
      this.spread = spread;
      this.apply = apply;
      this.rows = [];
    }

    push(row) {
      if (this.rows.length === 0) for (let k = 0; k < this.spread; k++) this.rows.push(row);
      this.rows.push(row);
      if (this.rows.length <= 2 * this.spread) return [];
      const found = this.apply(this.rows);
      this.rows.shift();
      return [found];
    }

    finish() {
      const last = this.rows[this.rows.length - 1];
      const found = [];
      if (last !== undefined) for (let k = 0; k < this.spread; k++) found.push(...this.push(last));
      return found;
    }
  }

  // Append to the row in the middle the slopes of its columns from `first` on.
  function withSlopes(rows, first) {
    const middle = rows[2];
    const n = middle.length;
    const row = new Float32Array(2 * n - first);
    row.set(middle);
    for (let c = first; c < n; c++) {
      const near = Math.fround(rows[3][c] - rows[1][c]);
      const far = Math.fround(2 * Math.fround(rows[4][c] - rows[0][c]));
      row[n + c - first] = Math.fround(near + far) / 10;
    }
    return row;
  }

  // (x - mean) / deviation; a column whose deviation is below `still` becomes zero.
  function scaled(row, mean, deviation, still) {
    return row.map((x, c) => (deviation[c] < still ? 0 : (x - mean[c]) / deviation[c]));
  }

  // Normalises by the moments of the frames so far, which begin with those of the training part.
  class RunningScale {
    constructor({ mean, deviation, still, prior_frames, longest_memory }) {
      this.mean = Float64Array.from(mean);
      this.square = Float64Array.from(deviation, (d, c) => d * d + mean[c] * mean[c]);
      this.still = still;
      this.longest = longest_memory;
      this.seen = prior_frames;
    }

    apply(row) {
      const { mean, square } = this;
      this.seen = Math.min(this.seen + 1, this.longest);
      return row.map((x, c) => {
        mean[c] += (x - mean[c]) / this.seen;
        square[c] += (x * x - square[c]) / this.seen;
        const deviation = Math.sqrt(Math.max(square[c] - mean[c] * mean[c], 0));
        return deviation >= this.still ? (x - mean[c]) / deviation : 0;
      });
    }
  }

  // The recipe of a payload for samples that come piece by piece. `push` and `finish` return the rows that are complete;
  // with normalisation per utterance there are none before the end.
  class FeatureStream {
    constructor(recipe, onSpectrum = () => {}) {
      this.recipe = recipe;
      this.onSpectrum = onSpectrum; // is called with the power spectrum of every window
      this.cepstra = new Cepstra(recipe.mfcc);
      this.samples = new Float32Array(0);
      const columns = recipe.mfcc.cepstra;
      this.slopes = [
        new Neighbours(2, (rows) => withSlopes(rows, 0)),
        new Neighbours(2, (rows) => withSlopes(rows, columns)),
      ];
      this.context = new Neighbours((recipe.context - 1) / 2, stacked);
      this.running = recipe.normalise === "running" ? new RunningScale(recipe.scale) : null;
      this.waiting = recipe.normalise === "utterance" ? [] : null;
    }

    push(samples) {
      const { window: size, shift } = this.recipe.mfcc;
      const all = joined(this.samples, samples);
      const found = [];
      let start = 0;
      for (; start + size <= all.length; start += shift) {
        const row = this.cepstra.of(all, start);
        this.onSpectrum(this.cepstra.power);
        this.through(0, row, found);
      }
      this.samples = all.slice(start);
      return found;
    }

    finish() {
      const found = [];
      for (let k = 0; k < this.slopes.length; k++) {
        for (const row of this.slopes[k].finish()) this.through(k + 1, row, found);
      }
      if (this.waiting !== null) {
        const { mean, deviation } = moments(this.waiting);
        for (const row of this.waiting) {
          found.push(...this.context.push(scaled(row, mean, deviation, this.recipe.scale.still)));
        }
      }
      found.push(...this.context.finish());
      return found;
    }

    // Hand a row to the differences from number k on, then to the normalisation and the context.
    through(k, row, found) {
      if (k < this.slopes.length) {
        for (const wider of this.slopes[k].push(row)) this.through(k + 1, wider, found);
      } else if (this.waiting !== null) {
        this.waiting.push(row);
      } else {
        found.push(...this.context.push(this.normalised(row)));
      }
    }

    normalised(row) {
      if (this.running !== null) return this.running.apply(row);
      const { mean, deviation, still } = this.recipe.scale;
      return this.recipe.normalise === "corpus" ? scaled(row, mean, deviation, still) : row;
    }
  }

  function stacked(rows) {
    const n = rows[0].length;
    const row = new Float32Array(n * rows.length);
    rows.forEach((one, k) => row.set(one, k * n));
    return row;
  }

  // Mean and standard deviation of every column, in two passes.
  function moments(rows) {
    const n = rows.length === 0 ? 0 : rows[0].length;
    const mean = new Float64Array(n);
    const deviation = new Float64Array(n);
    for (const row of rows) for (let c = 0; c < n; c++) mean[c] += row[c] / rows.length;
    for (const row of rows) for (let c = 0; c < n; c++) deviation[c] += (row[c] - mean[c]) ** 2 / rows.length;
    return { mean, deviation: deviation.map(Math.sqrt) };
  }

  Object.assign(globalThis.echolearn.speech, { RATE, FULL_SCALE, Resampler, FeatureStream });
})();
