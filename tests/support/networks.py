"""Random networks with properties that some tests need."""

import numpy as np

import reference as ref


def two_directions(rng, N=6, **how):
    """Draw weights, and a mask of backward units without connections to or from forward ones."""
    w = ref.network(rng, N=N, **how)
    backward = rng.permutation(np.arange(N) % 2 == 0)
    w["W_rec"][backward[:, None] != backward] = 0
    return w, backward


def contracting(rng, limit=0.9, **how):
    """Draw weights whose W_rec has a norm of at most `limit`, so that errors of rounding do not grow."""
    w = ref.network(rng, **how)
    w["W_rec"] *= limit / max(limit, np.linalg.norm(w["W_rec"], 2))
    return w


def forgetful(seed, steps, *, feedback=False, radius=0.6, N=None):
    """Draw a network that forgets its past within a chunk, and a sequence with targets for it."""
    rng = np.random.default_rng([11, seed])
    w = ref.network(rng, N=N, feedback=feedback, bias=bool(seed % 2))
    w["W_rec"] *= radius / np.linalg.norm(w["W_rec"], 2)
    w["leak"] = rng.uniform(0.7, 1, len(w["leak"]))
    h0 = rng.normal(size=len(w["leak"])) if seed % 3 == 0 else None
    x = rng.normal(size=(steps, len(w["W"])))
    t = rng.normal(size=(steps, 2)) if feedback else None
    return rng, w, h0, x, t
