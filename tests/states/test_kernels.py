"""The compiled loops themselves: the way back is the transpose of the way there, over any length and width."""

import numpy as np
import pytest

import reference as ref
from echolearn.gradients.exact import through_time
from echolearn.reservoir.activations import ACTIVATIONS
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import pack
from echolearn.states import _kernels as kernels
from echolearn.states.run import run


def problem(seed, lengths, activation, dtype, N=6):
    rng = np.random.default_rng([5, seed])
    w = ref.network(rng, N=N, n_in=2)
    w["W_rec"] *= 0.8 / max(np.abs(np.linalg.eigvals(w["W_rec"])).max(), 0.8)
    batch = pack([rng.normal(size=(n, 2)) for n in lengths], dtype)
    return rng, Reservoir(**w, activation=activation), batch


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("lengths", [[1], [5, 3, 3, 1], [2 * kernels.FLUSH + 3], [300, 299, 20]])
def test_the_way_back_is_the_transpose(activation, lengths):
    """<dE/dH, dH> = <gradients, dweights> along random directions, dH by central differences."""
    rng, r, batch = problem(len(lengths), lengths, activation, np.float64)
    states = run(r, batch)
    D = rng.normal(size=states.H.shape)
    g = through_time(r, batch, states, D.copy(), lookback=None, washout=0)
    towards = {
        name: rng.normal(size=v.shape)
        for name, v in {"W": r.W, "W_rec": r.W_rec.data, "bias": r.bias, "leak": r.leak}.items()
    }
    e = 1e-7
    ahead, behind = (
        run(
            r.with_weights(
                W=r.W + s * towards["W"],
                W_rec=r.W_rec.data + s * towards["W_rec"],
                bias=r.bias + s * towards["bias"],
                leak=r.leak + s * 1e-2 * towards["leak"],
            ),
            batch,
        ).H
        for s in (e, -e)
    )
    along = np.vdot(D, (ahead - behind) / (2 * e))
    mine = sum(np.vdot(getattr(g, k), t * (1e-2 if k == "leak" else 1)) for k, t in towards.items())
    assert mine == pytest.approx(along, rel=1e-5, abs=1e-5 * np.abs(D).sum())


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_float32_partial_sums_flow_on_to_float64(activation):
    """Thousands of frames: the float32 gradient stays close to the float64 one, whatever the order of sums."""
    lengths = [700, 699, 400, 257, 256, 255, 1]
    (_, r, b64), (_, _, b32) = (problem(9, lengths, activation, d) for d in (np.float64, np.float32))
    D = np.random.default_rng(0).normal(size=(sum(lengths), 6)) + 0.5
    exact = through_time(r, b64, run(r, b64), D.copy(), lookback=None, washout=0)
    short = through_time(r, b32, run(r, b32), D.astype(np.float32), lookback=None, washout=0)
    for name in ("W", "W_rec", "bias", "leak"):
        a, b = getattr(exact, name), getattr(short, name)
        assert b.dtype == np.float64
        assert np.abs(a - b).max() <= 2e-4 * np.abs(a).max(), name


def test_a_batch_is_the_sum_of_its_sequences():
    rng, r, batch = problem(3, [9, 4, 7], "tanh", np.float64)
    D = rng.normal(size=(20, 6))
    whole = through_time(r, batch, run(r, batch), D.copy(), lookback=2, washout=1)
    total = dict.fromkeys(("W", "W_rec", "bias", "leak"), 0)
    for s in range(3):
        one = pack([batch.X[batch.rows(s)]], np.float64)
        g = through_time(r, one, run(r, one), D[batch.rows(s)].copy(), lookback=2, washout=1)
        total = {name: total[name] + getattr(g, name) for name in total}
    for name, value in total.items():
        np.testing.assert_allclose(getattr(whole, name), value, rtol=1e-10, atol=1e-12)


def test_slopes_are_told_from_values():
    z = np.linspace(-3, 3, 41)
    for name, code in ACTIVATIONS.items():
        f = z.copy()
        kernels.activate(code, f)
        np.testing.assert_allclose(f, ref.ACTIVATIONS[name](z), rtol=1e-12, atol=1e-15)
        slope = np.ones_like(z)
        kernels._times_slope(code, f, slope)
        complex_slope = ref.ACTIVATIONS[name](z + 1e-30j).imag / 1e-30
        np.testing.assert_allclose(slope, complex_slope, rtol=1e-10, atol=1e-12)
