"""Topologies: what each promises, for any size and seed; given matrices; one input scale per feature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import toys
from echolearn import ESNClassifier, ESNRegressor, Reservoir, load
from echolearn.exceptions import CheckpointError
from echolearn.fitting.parameters import flat_settings
from echolearn.fitting.settings import NetworkSettings, check
from echolearn.modelfile.checkpoint import matrix_fingerprint
from echolearn.reservoir._topologies import (
    MAX_GROUPS,
    TOPOLOGIES,
    delay_line,
    group_of_units,
    orthogonal,
    random_connections,
    recurrent_weights,
    ring,
    small_world,
)
from echolearn.states import harvest
from toys import grouped

X, VALUES = toys.echoes(sequences=6)
sizes = st.integers(2, 30)
seeds = st.integers(0, 999)


def made(topology, N, seed=0, connections=3, radius=0.9):
    return recurrent_weights(topology, np.random.default_rng(seed), N, connections, radius).toarray()


@settings(max_examples=30, deadline=None)
@given(sizes, seeds, st.sampled_from([t for t in TOPOLOGIES if t not in ("delay_line", "small_world")]))
def test_every_topology_has_the_given_spectral_radius(N, seed, topology):
    # the groups of a deep one share an eigenvalue, and are coupled: rounding moves it by the fourth root of an error
    rel = 1e-3 if topology == "deep" else 1e-5
    assert np.abs(np.linalg.eigvals(made(topology, N, seed))).max() == pytest.approx(0.9, rel=rel)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 99))
def test_every_unit_has_as_many_incoming_as_outgoing_connections(N, connections, seed):
    connections = min(N, connections)
    W_rec = random_connections(np.random.default_rng(seed), N, connections)
    pattern = W_rec.toarray() != 0
    assert (pattern.sum(axis=0) == connections).all()
    assert (pattern.sum(axis=1) == connections).all()


def test_random_connections_are_not_a_fixed_band():
    a, b = (random_connections(np.random.default_rng(s), 30, 3).toarray() != 0 for s in (0, 1))
    assert (a != b).any()
    # in every row the distances between the connected units differ from row to row
    gaps = {tuple(np.diff(np.flatnonzero(row))) for row in a}
    assert len(gaps) > 10


@settings(max_examples=20, deadline=None)
@given(sizes)
def test_a_ring_shifts_states_and_returns_after_its_length(N):
    W_rec = ring(N).toarray()
    h = np.arange(N)
    np.testing.assert_array_equal(W_rec @ h, np.roll(h, 1))
    np.testing.assert_array_equal(np.linalg.matrix_power(W_rec, N), np.eye(N))
    np.testing.assert_allclose(np.sort(np.abs(np.linalg.eigvals(0.8 * W_rec))), 0.8)


@settings(max_examples=20, deadline=None)
@given(sizes)
def test_a_delay_line_forgets_after_its_length(N):
    W_rec = delay_line(N).toarray()
    np.testing.assert_array_equal(W_rec @ np.arange(1, N + 1), np.arange(N))
    assert (np.linalg.matrix_power(W_rec, N - 1) != 0).sum() == 1
    assert (np.linalg.matrix_power(W_rec, N) == 0).all()
    np.testing.assert_array_equal(made("delay_line", N, radius=0.7), 0.7 * W_rec)


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 30), seeds, st.floats(0, 1), st.data())
def test_a_small_world_keeps_its_degree(N, seed, rewired, data):
    connections = data.draw(st.integers(1, N - 1))
    pattern = small_world(np.random.default_rng(seed), N, connections, rewired).toarray() != 0
    assert (pattern.sum(axis=1) == connections).all()
    assert not pattern.diagonal().any()


def test_a_small_world_is_local_with_a_few_shortcuts():
    def distances(rewired):
        rows, columns = small_world(np.random.default_rng(0), 200, 6, rewired).nonzero()
        around = np.abs(rows - columns)
        return np.minimum(around, 200 - around)

    assert (distances(0.0) <= 3).all()
    assert 0.05 < (distances(0.1) > 3).mean() < 0.15
    assert (distances(1.0) > 3).all()  # others are never neighbours
    with pytest.raises(ValueError, match=r"connections=5 of 5 units; a small world needs fewer"):
        small_world(np.random.default_rng(0), 5, 5)


@settings(max_examples=20, deadline=None)
@given(sizes, seeds)
def test_an_orthogonal_matrix_keeps_lengths(N, seed):
    Q = orthogonal(np.random.default_rng(seed), N).toarray()
    np.testing.assert_allclose(Q @ Q.T, np.eye(N), atol=1e-12)


def test_rotations_are_drawn_evenly():
    """The trace of an evenly drawn rotation has mean 0 and variance 1; without the signs of R it is biased."""
    rng = np.random.default_rng(0)
    traces = [orthogonal(rng, 4).trace() for _ in range(2000)]
    assert abs(np.mean(traces)) < 0.1
    assert np.var(traces) == pytest.approx(1, abs=0.15)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), seeds)
def test_groups_are_separate_and_deep_ones_connected_to_the_group_before(N, seed):
    group = group_of_units(N)
    assert group[-1] + 1 == min(MAX_GROUPS, N)
    assert np.bincount(group).max() - np.bincount(group).min() <= 1
    step = group[:, None] - group
    assert (made("groups", N, seed)[step != 0] == 0).all()
    deep = made("deep", N, seed)
    assert (deep[(step != 0) & (step != 1)] == 0).all()
    assert ((deep * (step == 1) != 0).sum(axis=1) == (group > 0)).all()
    for k in range(group[-1] + 1):
        block = made("groups", N, seed)[np.ix_(group == k, group == k)]
        assert np.abs(np.linalg.eigvals(block)).max() == pytest.approx(0.9, rel=1e-5)


def test_groups_have_their_own_time_scales_and_deep_input_enters_at_the_first():
    for topology in ("groups", "deep"):
        r = Reservoir.random(2, 40, topology=topology, leak=(0.01, 1.0), random_state=0)
        np.testing.assert_allclose(r.leak[::10], [1, 10 ** (-2 / 3), 10 ** (-4 / 3), 0.01])
        assert len(np.unique(r.leak)) == 4
        assert (r.W[:, 10:] == 0).all() == (topology == "deep")
        assert (r.W[:, :10] != 0).all()
    impulse = np.zeros((6, 2))
    impulse[0] = 1
    reached = harvest(r, impulse).reshape(6, 4, 10).any(axis=2)
    np.testing.assert_array_equal(reached.argmax(axis=0), [0, 1, 2, 3])  # one step from group to group


def test_given_matrices_are_scaled_or_left():
    M = np.array([[0.0, 2.0], [2.0, 0.0]])
    for form in (M, sparse.csr_array(M), sparse.coo_matrix(M)):
        np.testing.assert_allclose(Reservoir.random(1, 2, topology=form).W_rec.toarray(), 0.45 * M)
        left = Reservoir.random(1, 2, topology=form, spectral_radius=None, leak=0.5)
        np.testing.assert_array_equal(left.W_rec.toarray(), M)
    with pytest.raises(ValueError, match=r"topology is a matrix of shape \(2, 2\); expected \(3, 3\)"):
        Reservoir.random(1, 3, topology=M)
    with pytest.raises(ValueError, match=r"topology='star'; expected one of 'random', 'ring'"):
        Reservoir.random(1, 3, topology="star")


def test_input_scaling_per_feature():
    r = Reservoir.random(3, 400, input_scaling=[0.1, 0.0, 2.0], random_state=0)
    np.testing.assert_allclose(np.abs(r.W).max(axis=1), [0.1, 0, 2], rtol=0.05)
    even = Reservoir.random(3, 400, input_scaling=[0.1, 0.1, 0.1], random_state=0)
    np.testing.assert_array_equal(even.W, Reservoir.random(3, 400, input_scaling=0.1, random_state=0).W)
    with pytest.raises(ValueError, match=r"input_scaling has 2 numbers, but X has 3 features"):
        Reservoir.random(3, 4, input_scaling=(0.1, 0.2))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_estimators_learn_with_every_topology(topology):
    esn = ESNRegressor(**grouped(toys.FAST, topology=topology)).fit(X, VALUES)
    assert esn.score(X, VALUES) > 0
    fixed = ESNRegressor(learn="none", **grouped(toys.FAST, topology=topology)).fit(X, VALUES)
    np.testing.assert_array_equal(esn.recurrent_weights_.indices, fixed.recurrent_weights_.indices)
    assert (esn.recurrent_weights_.data != fixed.recurrent_weights_.data).all()


def same_readout(a, b):
    np.testing.assert_array_equal(a.readout_weights_, b.readout_weights_)
    np.testing.assert_array_equal(a.intercept_, b.intercept_)


MATRIX = np.roll(np.diag(np.linspace(0.5, 1, 15)), 1, axis=0)


@pytest.mark.parametrize("form", [MATRIX, sparse.csr_array(MATRIX), MATRIX.astype(np.float32)], ids=["d", "s", "f"])
def test_given_matrices_survive_the_model_file(form, tmp_path):
    how = {**toys.FAST, "topology": form, "input_scaling": np.array([0.1, 0.4])}
    esn = ESNRegressor(**grouped(how)).fit(X, VALUES)
    esn.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert sparse.issparse(back.reservoir["topology"]) == sparse.issparse(form)
    assert matrix_fingerprint(back.reservoir["topology"]) == matrix_fingerprint(form)
    np.testing.assert_array_equal(back.predict(X[0]), esn.predict(X[0]))
    same_readout(back.fit(X, VALUES), esn)


def test_given_matrices_and_checkpoints(tmp_path):
    esn = ESNRegressor(**grouped(toys.FAST, topology=MATRIX))
    esn.fit(X, VALUES, checkpoint=tmp_path)
    other = ESNRegressor(**grouped(toys.FAST, topology=1.5 * MATRIX))
    with pytest.raises(CheckpointError, match="topology"):
        other.fit(X, VALUES, checkpoint=tmp_path)
    again = ESNRegressor(**grouped(toys.FAST, topology=sparse.csr_array(MATRIX))).fit(X, VALUES, checkpoint=tmp_path)
    same_readout(again, esn)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"topology": np.eye(3)}, r"topology is a matrix of shape \(3, 3\), but hidden_units=15\. Set hidden_units=3"),
        ({"spectral_radius": None}, r"spectral_radius=None; expected a number > 0, unless topology is a matrix"),
        ({"spectral_radius": None, "topology": MATRIX, "renormalize": True}, "and not renormalised"),
        (
            {"topology": np.eye(15)[1:]},
            r"topology=an array of shape \(14, 15\); expected one of .*'ring'.* or a square matrix",
        ),
        ({"topology": np.full((15, 15), np.nan)}, "a square matrix of finite numbers"),
        ({"topology": np.diag(np.ones(14), 1)}, "nilpotent"),
        ({"ensemble": 2, "topology": MATRIX, "kind": ESNClassifier}, "ensemble=2; expected 1, since topology is"),
        ({"input_scaling": [0.1, 0.1, 0.1]}, "input_scaling has 3 numbers, but X has 2 features"),
    ],
)
def test_what_does_not_fit_is_named(how, message):
    kind = how.pop("kind", ESNRegressor)
    with pytest.raises(ValueError, match=message):
        kind(**grouped({**toys.FAST, **how})).fit(X, VALUES)


def test_a_matrix_as_it_is():
    line = np.diag(np.ones(14), -1)
    esn = ESNRegressor(spectral_radius=None, learn="none", **grouped(toys.FAST, topology=line)).fit(X, VALUES)
    np.testing.assert_array_equal(esn.recurrent_weights_.toarray(), line)
    check({"spectral_radius": None, "topology": line, "hidden_units": 15})


def test_classifier_with_a_topology():
    labels = toys.labels(sequences=6)[1]
    esn = ESNClassifier(input_scaling=(0.1, 0.2), **grouped(toys.FAST, topology="ring")).fit(X, labels)
    assert esn.recurrent_weights_.nnz == 15


def networks(esn):
    """Return into how many networks a fit would split the hidden units."""
    return NetworkSettings.of(flat_settings(esn)).networks()


def test_a_topology_covers_all_units_unless_an_ensemble_is_asked_for():
    assert networks(ESNClassifier(1000, reservoir={"topology": "ring"})) == 1
    assert networks(ESNClassifier(1000, reservoir={"topology": sparse.eye_array(1000)})) == 1
    assert networks(ESNClassifier(1000, reservoir={"topology": "ring"}, ensemble=3)) == 3
