"""ESNRegressor: values per step, what is learned, the closed-form readout."""

import numpy as np
import pytest

import reference as ref
import toys
from echolearn import ESNRegressor
from echolearn.states import harvest
from toys import grouped

X, VALUES = toys.echoes(sequences=8)


def test_score_against_hand_counts():
    esn = ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES)
    true, got = np.concatenate(VALUES), np.concatenate(esn.predict(X))
    r2 = 1 - ((true - got) ** 2).sum(axis=0) / ((true - true.mean(axis=0)) ** 2).sum(axis=0)
    assert esn.score(X, VALUES) == pytest.approx(r2.mean())
    whole = np.concatenate(X), [len(x) for x in X]
    assert esn.score(whole[0], true, lengths=whole[1]) == pytest.approx(r2.mean(), abs=1e-5)


def test_learning_beats_the_fixed_network():
    train, test = toys.echoes(0, sequences=20, steps=(40, 60)), toys.echoes(1, sequences=10, steps=(40, 60))
    how = {"hidden_units": 20, "leak": 1.0, "learn_leak": False}
    fixed = ESNRegressor(learn="none", **grouped(how)).fit(*train).score(*test)
    learned = ESNRegressor(epochs=40, **grouped(how)).fit(*train).score(*test)
    assert learned > fixed + 0.05


def test_what_learn_leaves_alone():
    start = ESNRegressor(learn="none", **grouped(toys.FAST)).fit(X, VALUES).reservoir_
    only_input = ESNRegressor(learn="input", **grouped(toys.FAST, learn_leak=False)).fit(X, VALUES).reservoir_
    both = ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES).reservoir_
    np.testing.assert_array_equal(only_input.W_rec.data, start.W_rec.data)
    np.testing.assert_array_equal(only_input.leak, start.leak)
    assert (only_input.W != start.W).all()
    assert (both.W_rec.data != start.W_rec.data).all()
    assert (both.leak != start.leak).all()
    np.testing.assert_array_equal(both.W_rec.indices, start.W_rec.indices)
    np.testing.assert_array_equal(both.W_rec.indptr, start.W_rec.indptr)


def test_feedback_weights_are_learned_and_run_freely():
    """predict feeds back the network's own outputs: against a loop, one step after another."""
    values = [v[:, 0] for v in VALUES]
    fixed = ESNRegressor(feedback=True, learn="none", dtype="float64", **grouped(toys.FAST)).fit(X, values)
    esn = ESNRegressor(feedback=True, dtype="float64", **grouped(toys.FAST)).fit(X, values)
    assert (esn.feedback_weights_ != fixed.feedback_weights_).all()
    r = esn.reservoir_
    w = {"W": r.W, "W_rec": r.W_rec.toarray(), "bias": r.bias, "W_fb": r.W_fb, "leak": r.leak}
    x = (X[0] - esn.input_mean_) / esn.input_scale_
    outputs = ref.run_with_feedback(w, x, esn.network_.readout.U, "tanh", direct=True)[:, 0]
    slow = outputs * esn.target_scale_ + esn.target_mean_
    np.testing.assert_allclose(esn.predict(X[0]), slow, rtol=1e-9, atol=1e-9)


def test_washout_leaves_the_first_steps_out_of_the_fit():
    a = ESNRegressor(washout=4, **grouped(toys.FAST)).fit(X, VALUES)
    spoiled = [np.vstack([v[:4] + 100, v[4:]]) for v in VALUES]
    b = ESNRegressor(washout=4, **grouped(toys.FAST))
    # the scale of targets is taken over all steps, so compare at the same scale
    b.fit(X, spoiled)
    fitted = [np.concatenate([p[4:] for p in e.predict(X)]) for e in (a, b)]
    assert np.abs(fitted[0] - fitted[1]).max() < 0.5
    c = ESNRegressor(**grouped(toys.FAST)).fit(X, spoiled)
    assert np.abs(np.concatenate([p[4:] for p in c.predict(X)]) - fitted[0]).max() > 1


def test_the_final_readout_is_the_ridge_solution_over_all_frames():
    esn = ESNRegressor(learn="none", ridge=0.3, washout=2, dtype="float64", **grouped(toys.FAST)).fit(X, VALUES)
    seen = [(x - esn.input_mean_) / esn.input_scale_ for x in X]
    H = harvest(esn.reservoir_, seen)
    H_c = np.vstack([np.hstack([h, x, np.ones((len(x), 1))])[2:] for h, x in zip(H, seen, strict=True)])
    T = (np.concatenate([v[2:] for v in VALUES]) - esn.target_mean_) / esn.target_scale_
    penalty = np.sqrt(0.3) * np.eye(18)[:-1]
    U = np.linalg.lstsq(np.vstack([H_c, penalty]), np.vstack([T, np.zeros((17, 2))]), rcond=None)[0]
    np.testing.assert_allclose(esn.network_.readout.U, U, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("ridge", [np.float32(0.1), np.int64(1), 1, 0.5, [0.1, 1.0], np.array([0.1]), "auto", (1e-3,)])
def test_ridge_in_every_form(ridge):
    esn = ESNRegressor(ridge=ridge, **grouped(toys.FAST)).fit(X, VALUES)
    if np.ndim(ridge) == 0 and not isinstance(ridge, str):
        assert esn.ridge_ == pytest.approx(float(ridge))
    elif not isinstance(ridge, str):
        assert esn.ridge_ in ridge
    assert esn.ridge_ > 0


@pytest.mark.filterwarnings("ignore:all features are constant")
def test_singular_gram_without_ridge():
    with pytest.raises(ValueError, match=r"singular and ridge=0.*Give a positive ridge"):
        ESNRegressor(ridge=0, **grouped(toys.FAST)).fit([np.zeros((30, 2))], [np.arange(30.0)])
