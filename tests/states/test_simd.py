"""The moves on tiles against numpy, and the compiled loops over many sequences against plain ones."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference as ref
from echolearn.gradients.exact import through_time
from echolearn.reservoir.activations import ACTIVATIONS
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import pack, unpack
from echolearn.sequences.batching import LANES
from echolearn.states import _simd as lanes
from echolearn.states._kernels import activate
from echolearn.states._simd import STEPS
from echolearn.states._weights import compressed
from echolearn.states.harvesting import harvest
from echolearn.states.run import run

units = st.integers(1, 70)
dtypes = st.sampled_from(["float32", "float64"])
seeds = st.integers(0, 10**6)


@settings(max_examples=40, deadline=None)
@given(N=units, stride=st.integers(1, 3), live=st.integers(1, LANES), dtype=dtypes, seed=seeds)
def test_load_and_store(N, stride, live, dtype, seed):
    rng = np.random.default_rng(seed)
    r = int(rng.integers(0, 4))
    M = rng.normal(size=(r + (live - 1) * stride + 1, N)).astype(dtype)  # an ended lane would read beyond its end
    tile = np.full((N, LANES), np.nan, dtype)
    lanes.load(M, r, stride, live, tile)
    np.testing.assert_array_equal(tile[:, :live], M[r::stride].T)
    np.testing.assert_array_equal(tile[:, live:], 0)
    out, tile = M.copy(), rng.normal(size=(N, LANES)).astype(dtype)
    lanes.store(tile, out, r, stride, live)
    M[r::stride] = tile.T[:live]
    np.testing.assert_array_equal(out, M)


@settings(max_examples=40, deadline=None)
@given(N=units, density=st.floats(0, 1), dtype=dtypes, seed=seeds)
def test_products(N, density, dtype, seed):
    rng = np.random.default_rng(seed)
    W_rec = sparse.csr_array(rng.normal(size=(N, N)) * (rng.random((N, N)) < density))
    indptr, indices, data = compressed(W_rec, dtype)
    h, z = rng.normal(size=(2, N, LANES)).astype(dtype)
    expected = z + W_rec @ h
    lanes.add_product(indptr, indices, data, h, z)
    close = 10 * N * np.finfo(dtype).eps
    np.testing.assert_allclose(z, expected, rtol=0, atol=close)
    Z, H = rng.normal(size=(2, STEPS, N, LANES)).astype(dtype)
    out = rng.normal(size=W_rec.nnz)
    dense = np.einsum("sib,sjb->ij", Z, H, dtype=np.float64)
    expected = out + dense[np.repeat(np.arange(N), np.diff(W_rec.indptr)), W_rec.indices]
    lanes.add_outer(indptr, indices, Z, H, out)
    np.testing.assert_allclose(out, expected, rtol=0, atol=100 * STEPS * LANES * np.finfo(dtype).eps)


@settings(max_examples=30, deadline=None)
@given(
    seed=seeds,
    N=units,
    activation=st.sampled_from(list(ACTIVATIONS)),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=2 * LANES + 3),
    feedback=st.booleans(),
    dtype=dtypes,
)
def test_any_number_of_sequences_agrees_with_loops(seed, N, activation, lengths, feedback, dtype):
    """States against loops; gradients against those of the sequences one by one."""
    rng = np.random.default_rng(seed)
    w = ref.network(rng, N=N, feedback=feedback, bias=bool(seed % 2))
    w["W_rec"] *= 0.9 / max(0.9, np.linalg.norm(w["W_rec"], 2))
    h0 = rng.normal(size=N) if seed % 3 == 0 else None
    r = Reservoir(**w, activation=activation, initial_state=h0)
    X = [rng.normal(size=(n, len(w["W"]))) for n in lengths]
    T = [rng.normal(size=(n, 2)) for n in lengths] if feedback else None
    batch = pack(X, dtype, T)
    found = run(r, batch)
    for i, H in enumerate(unpack(batch, found.H)):
        slow = ref.states(w, X[i], activation, T and T[i], h0).T
        np.testing.assert_allclose(H, slow, rtol=0, atol=100 * np.finfo(dtype).eps * max(1, np.abs(slow).max()))
    D = rng.normal(size=found.H.shape).astype(dtype)
    g, again = (through_time(r, batch, found, D.copy(), lookback=7, washout=2) for _ in range(2))
    one_by_one = None
    for s, i in enumerate(batch.order):
        one = pack([X[i]], np.float64, None if T is None else [T[i]])
        part = through_time(r, one, run(r, one), D[batch.rows(s)].astype(np.float64), lookback=7, washout=2)
        if one_by_one is None:
            one_by_one = part
        else:
            one_by_one += part
    for name in ("W", "W_rec", "W_fb", "bias", "leak"):
        a, b = getattr(g, name), getattr(one_by_one, name)
        if b is not None:
            close = 1e3 * np.finfo(dtype).eps * max(np.abs(b).max(initial=0), np.sqrt(sum(lengths)))
            np.testing.assert_allclose(a, b, rtol=0, atol=close)
            np.testing.assert_array_equal(a, getattr(again, name))


@settings(max_examples=30, deadline=None)
@given(
    seed=seeds,
    N=units,
    activation=st.sampled_from(list(ACTIVATIONS)),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=2 * LANES + 3),
    dtype=dtypes,
)
def test_states_of_a_list_agree_with_loops(seed, N, activation, lengths, dtype):
    """Packed by steps, or one sequence after another where their lengths are alike."""
    rng = np.random.default_rng(seed)
    w = ref.network(rng, N=N, bias=bool(seed % 2))
    w["W_rec"] *= 0.9 / max(0.9, np.linalg.norm(w["W_rec"], 2))
    h0 = rng.normal(size=N) if seed % 3 == 0 else None
    X = [rng.normal(size=(n, len(w["W"]))) for n in lengths]
    reservoir = Reservoir(**w, activation=activation, initial_state=h0)
    for x, H in zip(X, harvest(reservoir, X, dtype=dtype), strict=True):
        slow = ref.states(w, x, activation, None, h0).T
        np.testing.assert_allclose(H, slow, rtol=0, atol=100 * np.finfo(dtype).eps * max(1, np.abs(slow).max()))


def test_tanh_in_float64():
    x = np.concatenate([np.linspace(-25, 25, 200001), np.geomspace(1e-300, 1, 2001), [0.0, 1e300, -np.inf, np.inf]])
    y = x.copy()
    activate(ACTIVATIONS["tanh"], y)
    np.testing.assert_allclose(y, np.tanh(x), rtol=2e-15, atol=0)
    assert np.abs(y).max() <= 1
    odd = -x
    activate(ACTIVATIONS["tanh"], odd)
    np.testing.assert_array_equal(odd, -y)
    nan = np.array([np.nan])
    activate(ACTIVATIONS["tanh"], nan)
    assert np.isnan(nan[0])
