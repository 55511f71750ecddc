/* A forecaster in its closed loop: one path, and the interval of many.

   echolearn.forecastLoop(model) -> loop
     loop.begin(X): from known values X (steps * inputs)        loop.advance(n) -> the next n values, row by row
     loop.change({leak, radius}): with other weights from here on
     loop.interval(steps, done): done({low, high, steps}) bounds of 90 % from where `begin` was, or null without residuals */
"use strict";
(() => {
  const PATHS = 120, COVERAGE = 0.9;

  /** Random numbers in [0, 1) that are the same every time. */
  function generator(seed) {
    let state = seed;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  function quantile(sorted, share) {
    const place = share * (sorted.length - 1), k = Math.floor(place);
    return sorted[k] + (place - k) * ((sorted[k + 1] ?? sorted[k]) - sorted[k]);
  }

  function forecastLoop(base) {
    const residuals = base.extra.residuals ? globalThis.echolearn.unpack(base.extra.residuals).values : null;
    const dims = base.outputs;
    let model = base, state = null, first = null, waiting = null;

    /** Compute the bounds path by path, a few milliseconds at a time. */
    function interval(steps, done) {
      clearTimeout(waiting);
      if (!residuals || !first) { done(null); return; }
      const random = generator(1), all = new Float64Array(PATHS * steps * dims), rows = residuals.length / dims, from = first, of = model;
      let path = 0;
      const work = () => {
        const until = performance.now() + 10;
        for (; path < PATHS && performance.now() < until; path++) {
          const own = of.copy(from);
          for (let t = 0; t < steps; t++) {
            const r = Math.floor(random() * rows) * dims;
            all.set(of.next(own, residuals.subarray(r, r + dims)), (path * steps + t) * dims);
          }
        }
        if (path < PATHS) { waiting = setTimeout(work); return; }
        const low = new Float64Array(steps * dims), high = new Float64Array(steps * dims), column = new Float64Array(PATHS);
        for (let i = 0; i < steps * dims; i++) {
          for (let p = 0; p < PATHS; p++) column[p] = all[p * steps * dims + i];
          column.sort();
          low[i] = quantile(column, (1 - COVERAGE) / 2);
          high[i] = quantile(column, (1 + COVERAGE) / 2);
        }
        done({ low, high, steps });
      };
      waiting = setTimeout(work);
    }

    return {
      base, dims, coverage: COVERAGE, interval,
      get model() { return model; },
      begin(X) {
        state = model.warm(X);
        first = model.copy(state);
      },
      advance(n) {
        const out = new Float64Array(n * dims);
        for (let t = 0; t < n; t++) out.set(model.next(state), t * dims);
        return out;
      },
      change(to) { model = to.leak === 1 && to.radius === 1 ? base : base.changed(to); },
      /** How far the newest value is from the mean, in standard deviations. */
      get distance() { return state.value.reduce((far, v) => (Number.isNaN(v) ? Infinity : Math.max(far, Math.abs(v))), 0); },
    };
  }

  Object.assign(globalThis.echolearn, { forecastLoop });
})();
