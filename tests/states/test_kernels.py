"""The two versions of the compiled loops, for few and for many sequences, against each other."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy import sparse

import reference as ref
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS
from echolearn.sequences.batch import LANES, pack
from echolearn.sequences.selection import block_starts
from echolearn.states import _kernels as kernels
from echolearn.states._activations import precise_tanh
from echolearn.states._kernels import COMPILING_TEXT, compressed, drive, padded, padded_positions
from networks import contracting

problems = given(
    seed=st.integers(0, 10**6),
    N=st.integers(1, 40),
    activation=st.sampled_from(list(ACTIVATIONS)),
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=LANES + 5),
)


def draw(seed, N, activation, lengths):
    """Draw W_rec, leak rates, a batch of drives, and initial states."""
    rng = np.random.default_rng(seed)
    w = contracting(rng, N=N)
    batch = pack([rng.normal(size=(n, N)) for n in lengths], np.float64)
    h0 = rng.normal(size=(len(lengths), N))
    return rng, sparse.csr_array(w["W_rec"]), w["leak"], ACTIVATIONS[activation], batch, h0


def forward(W_rec, a, code, batch, h0):
    F, H = batch.X.copy(), np.empty_like(batch.X)
    kernels.forward_few(padded(W_rec, np.float64), a, code, **rows_of(batch), h0=h0, F=F, H=H)
    return F, H


def rows_of(batch):
    return {"active": batch.active, "offsets": batch.offsets}


@settings(max_examples=30, deadline=None)
@problems
def test_the_loops_for_few_and_many_sequences_give_the_same_states(seed, N, activation, lengths):
    _, W_rec, a, code, batch, h0 = draw(seed, N, activation, lengths)
    F, H = forward(W_rec, a, code, batch, h0)
    for keep_F in (True, False):
        F_many, H_many = batch.X.copy(), np.empty_like(batch.X)
        weights, rows = (compressed(W_rec, np.float64), a, code), rows_of(batch)
        kernels.forward_many(*weights, **rows, stride=1, h0=h0, F=F_many, H=H_many, keep_F=keep_F)
        np.testing.assert_allclose(H_many, H, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(F_many, F if keep_F else batch.X, rtol=1e-10, atol=1e-12)
    in_place = batch.X.copy()
    kernels.forward_few(padded(W_rec, np.float64), a, code, **rows_of(batch), h0=h0, F=in_place, H=in_place)
    np.testing.assert_array_equal(in_place, H)


@settings(max_examples=30, deadline=None)
@problems
def test_the_loops_for_few_and_many_sequences_give_the_same_gradients(seed, N, activation, lengths):
    rng, W_rec, a, code, batch, h0 = draw(seed, N, activation, lengths)
    F, H = forward(W_rec, a, code, batch, h0)
    D, W_rec_T = rng.normal(size=H.shape), W_rec.T.tocsr()
    cut = block_starts(len(batch.active), 1, 4)
    Z_few, Z_many = D.copy(), D.copy()
    matrices = (padded(W_rec, np.float64)[0], *padded(W_rec_T, np.float64))
    rows = {**rows_of(batch), "cut": cut, "h0": h0, "F": F, "H": H}
    on_pattern, leak_few = kernels.backward_few(matrices, a, code, **rows, D=Z_few)
    matrices = (*compressed(W_rec, np.float64)[:2], *compressed(W_rec_T, np.float64))
    ahead = np.zeros((2, *h0.shape))
    W_rec_many, leak_many = kernels.backward_many(matrices, a, code, **rows, stride=1, D=Z_many, ahead=ahead)
    np.testing.assert_allclose(Z_many, Z_few, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(W_rec_many, on_pattern[padded_positions(W_rec)], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(leak_many, leak_few, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("steps", [1, 5])
def test_errors_from_ahead_enter_at_the_last_step_and_leave_at_the_first(steps):
    """The way back over a whole sequence is that over its second half, then that over its first half."""
    rng, W_rec, a, code, batch, h0 = draw(3, 6, "tanh", [2 * steps] * LANES)
    F, H = forward(W_rec, a, code, batch, h0)
    D = rng.normal(size=H.shape)
    matrices = (*compressed(W_rec, np.float64)[:2], *compressed(W_rec.T.tocsr(), np.float64))

    def back(begin, end, start, ahead, Z):
        rows = slice(begin * LANES, end * LANES)
        order = {"active": np.full(end - begin, LANES), "offsets": np.arange(end - begin) * LANES, "stride": 1}
        order["cut"] = np.zeros(end - begin, bool)
        seen = {"h0": start, "F": F[rows], "H": H[rows], "D": Z[rows], "ahead": ahead}
        return kernels.backward_many(matrices, a, code, **order, **seen)

    Z, ahead = D.copy(), np.zeros((2, LANES, 6))
    whole = back(0, 2 * steps, h0, ahead, Z)
    Z_halves, ahead_halves = D.copy(), np.zeros((2, LANES, 6))
    second = back(steps, 2 * steps, H[(steps - 1) * LANES : steps * LANES].copy(), ahead_halves, Z_halves)
    first = back(0, steps, h0, ahead_halves, Z_halves)
    np.testing.assert_allclose(Z_halves, Z, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ahead_halves, ahead, rtol=1e-10, atol=1e-12)
    for all_at_once, one, other in zip(whole, first, second, strict=True):
        np.testing.assert_allclose(one + other, all_at_once, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("sequences", "lanes"), [(1, 4), (4, 4), (5, 8), (8, 8), (9, 16), (16, 16), (40, 16)])
def test_tiles_are_as_narrow_as_the_sequences_allow_for(sequences, lanes):
    """A mini-batch of eight sequences, in two shares, fills the lanes of its tiles."""
    assert kernels.lanes_for(sequences) == lanes


# One line says that the loops are compiled


PROGRAM = """
import numpy as np
from echolearn.states import _kernels
for dtype in ("float32", "float32", "float64"):
    place, value = np.zeros((0, 2), np.uint32), np.zeros((0, 2), dtype)
    F, active = np.zeros((1, 2), dtype), np.ones(1, np.int64)
    h0, a, offsets = np.zeros((1, 2), dtype), np.ones(2, dtype), np.zeros(1, np.int64)
    _kernels.forward_few((place, value), a, 1, active=active, offsets=offsets, h0=h0, F=F, H=F)
"""


def test_compilation_is_announced_once_with_an_empty_cache_and_never_with_a_full_one(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        said.append(run.stderr.count(COMPILING_TEXT))
        assert run.stdout == ""
    assert said == [1, 0]


# ---------------- Weights in the layouts of the compiled loops, and the drive of the units


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_both_layouts_hold_the_matrix(density):
    rng = np.random.default_rng(1)
    dense = rng.normal(size=(7, 7)) * (rng.random((7, 7)) < density)
    W_rec = sparse.csr_array(dense)
    place, value = padded(W_rec, np.float64)
    h = rng.normal(size=7)
    np.testing.assert_allclose((value * h[place]).sum(axis=0), dense @ h, atol=1e-14)
    np.testing.assert_array_equal(value[padded_positions(W_rec)], W_rec.data)
    indptr, indices, data = compressed(W_rec, "float32")
    assert (indptr.dtype, indices.dtype, data.dtype) == (np.uint32, np.uint32, np.float32)
    again = sparse.csr_array((data, indices.astype(int), indptr.astype(int)), shape=(7, 7))
    np.testing.assert_array_equal(again.toarray(), dense.astype(np.float32))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("feedback", [True, False])
def test_the_drive_is_all_of_eq_1_but_the_recurrence(bias, feedback):
    rng = np.random.default_rng(0)
    w = ref.network(rng, N=5, n_in=3, bias=bias, feedback=feedback)
    X, X_fb = rng.normal(size=(6, 3)), rng.normal(size=(6, 2)) if feedback else None
    expected = X @ w["W"] + (X_fb @ w["W_fb"].T if feedback else 0) + (w["bias"] if bias else 0)
    reservoir, out = Reservoir(**w), np.empty((6, 5))
    np.testing.assert_allclose(drive(reservoir, X, X_fb), expected, rtol=1e-13, atol=1e-14)
    assert np.shares_memory(drive(reservoir, X, X_fb, out), out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-14)
    assert drive(reservoir, X.astype(np.float32), None if X_fb is None else X_fb.astype("f4")).dtype == np.float32


def test_tiles_begin_at_a_cache_line():
    for dtype, shape in (("float32", (3, 5)), ("float64", (7, 2, 4))):
        zeros = kernels.aligned_zeros(shape, dtype)
        assert zeros.ctypes.data % kernels.CACHE_LINE_BYTES == 0
        assert (zeros.shape, zeros.dtype) == (shape, dtype)
        assert zeros.flags.c_contiguous
        assert not zeros.any()


def test_precise_tanh_is_right_to_rounding():
    """Its errors in float32 have either sign, near 0 and at saturation too: they must not add up over time."""
    x = np.linspace(-12, 12, 400_001).astype(np.float32)
    z = x.copy()
    _precise_tanh(z)
    errors = (z - np.tanh(x.astype(float))) * np.sign(x)
    assert np.abs(errors).max() < 4e-7
    for low, high in ((0, 0.5), (0.5, 1), (1, 2), (2, 4), (4, 9), (9, 12)):
        assert abs(errors[(np.abs(x) >= low) & (np.abs(x) < high)].mean()) < 1.6e-8
    wide = x.astype(float)
    _precise_tanh(wide)
    np.testing.assert_allclose(wide, np.tanh(x.astype(float)), rtol=1e-14)


@njit
def _precise_tanh(z):
    precise_tanh(z)
