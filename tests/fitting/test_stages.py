"""A fit: its stages, early stopping, Ctrl-C, failures, weights that explode, memory."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.exceptions import EchoStateWarning, TrainingWarning
from echolearn.fitting import stages as fit_stages
from echolearn.readout import view as views
from echolearn.states.run import run
from toys import grouped

X, LABELS = toys.labels(sequences=8)
VALUES = toys.echoes(sequences=8)[1]
BOTH = [ESNClassifier, ESNRegressor]


@pytest.fixture
def stages(monkeypatch):
    """What each stage of a fit was given and what it returned, by the names of the stages, in their order."""
    found = {}

    def recorded(stage):
        def run_stage(fit, context):
            after = stage(fit, context)
            found[stage.__name__] = fit, after
            return after

        return run_stage

    monkeypatch.setattr(fit_stages, "STAGES", [recorded(stage) for stage in fit_stages.STAGES])
    return found


def test_a_fit_is_a_list_of_stages(stages):
    """Each stage adds its own to what the stages before have found, and changes nothing of it."""
    esn = ESNClassifier(**grouped({**toys.FAST, "validation_fraction": 0.25}, refine_epochs=2)).fit(X, LABELS)
    assert list(stages) == [
        "learn_weights",
        "fit_ridge_readout",
        "fit_softmax_readout",
        "refine_weights",
        "examine_result",
        "finish_readout",
    ]
    results = [after for _, after in stages.values()]
    for before, (given, _) in zip(results, list(stages.values())[1:], strict=False):
        assert given is before
    drawn = stages["learn_weights"][0]
    learned, ridge, softmax, refined, _, finished = results
    assert (drawn.readout, len(drawn.history)) == (None, 0)
    assert (learned.readout, len(learned.history)) == (None, 3)
    assert ridge.reservoir is learned.reservoir
    assert not ridge.readout.softmax
    assert ridge.readout.U is ridge.ridge_fit.U
    assert softmax.reservoir is learned.reservoir
    assert softmax.readout.softmax
    assert (len(softmax.refinement), len(refined.refinement)) == (0, 2)
    assert finished.reservoir is refined.reservoir
    assert (finished.readout.U != refined.readout.U).any()
    assert esn.network_.reservoir is finished.reservoir
    assert esn.network_.readout is finished.readout
    assert esn.history_ is finished.history
    assert esn.refinement_ is finished.refinement


@pytest.mark.parametrize(
    ("changes", "active"),
    [
        ({"learn": "none"}, {"fit_ridge_readout", "fit_softmax_readout"}),
        ({"learn": "none", "readout": "ridge"}, {"fit_ridge_readout"}),
        ({"epochs": 0, "readout": "ridge"}, {"fit_ridge_readout"}),
        ({"readout": "ridge"}, {"learn_weights", "fit_ridge_readout"}),
        ({"refine_epochs": 0}, {"learn_weights", "fit_ridge_readout", "fit_softmax_readout"}),
        (
            {"refine_epochs": 0, "validation_fraction": 0.25},
            {"learn_weights", "fit_ridge_readout", "fit_softmax_readout", "examine_result", "finish_readout"},
        ),
    ],
)
def test_a_stage_without_work_returns_what_it_was_given(stages, changes, active):
    ESNClassifier(**grouped({**toys.FAST, **changes})).fit(X, LABELS)
    assert {name for name, (before, after) in stages.items() if after is not before} == active


@pytest.mark.parametrize(("errors", "kept"), [((9, 5, 3, 4), 2), ((9, 5, 3, 2), 3), ((1, 5, 3, 4), 0)])
def test_refining_keeps_the_epoch_with_the_smallest_held_out_error(errors, kept, stages, monkeypatch):
    """errors: before refining, and after each of three epochs; 0: the weights as they were before it."""
    seen = []

    def validation_error(objective):
        reservoir, V = objective.snapshot()
        seen.append((reservoir.W.copy(), V.copy()))
        return errors[len(seen) - 1]

    monkeypatch.setattr(fit_stages.CrossEntropyObjective, "validation_error", validation_error)
    ESNClassifier(**grouped({**toys.FAST, "validation_fraction": 0.25}, refine_epochs=3)).fit(X, LABELS)
    _, refined = stages["refine_weights"]
    assert len(seen) == 4
    W, V = seen[kept]
    np.testing.assert_array_equal(refined.reservoir.W, W)
    np.testing.assert_array_equal(refined.readout.U, V)
    assert not any(np.array_equal(W, other) for k, (other, _) in enumerate(seen) if k != kept)


@pytest.mark.parametrize("number", range(len(fit_stages.STAGES)))
def test_a_stage_that_fails_leaves_no_trace_in_the_estimator(number, monkeypatch):
    """No attribute is set, replaced or changed before all stages are done; neither of a fitted nor of a new one."""

    def fail(fit, context):
        raise OSError("no space left")

    esn = ESNClassifier(**grouped(toys.FAST, refine_epochs=1))
    fitted = clone(esn).fit(X, LABELS)
    before, new, U = dict(vars(fitted)), dict(vars(esn)), fitted.network_.readout.U.copy()
    monkeypatch.setattr(fit_stages, "STAGES", [*fit_stages.STAGES[:number], fail])
    for estimator in (esn, fitted):
        with pytest.raises(OSError, match="no space left"):
            estimator.fit(X, [y[::-1] for y in LABELS])
    assert vars(esn) == new
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(fitted.network_.readout.U, U)


def test_echo_state_warning_reaches_the_user():
    with pytest.warns(EchoStateWarning, match=r"spectral_radius=1\.5"):
        ESNRegressor(learn="none", spectral_radius=1.5, leak=1.0, **grouped(toys.FAST)).fit(X, VALUES)


@pytest.mark.parametrize("fraction", [0.5, 0.97, 0.999])
def test_large_validation_fractions_still_fit(fraction):
    esn = ESNRegressor(**grouped({**toys.FAST, "validation_fraction": fraction}))
    assert np.isfinite(esn.fit(X, VALUES).predict(X[0])).all()
    long = np.random.default_rng(0).normal(size=(60, 2))
    assert np.isfinite(clone(esn).set_params(washout=3).fit(long, long).predict(long)).all()


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")
def test_early_stopping_keeps_the_weights_as_drawn_where_learning_only_hurts():
    """Held-out targets that cannot be learned: every epoch makes them worse."""
    rng = np.random.default_rng(0)
    noise = [rng.normal(size=v.shape) for v in VALUES]
    how = {**toys.FAST, "epochs": 30, "step_size": 0.05, "ridge": 1e-3}
    esn = ESNRegressor(**grouped(how, patience=3)).fit(X, VALUES, validation=(X, noise))
    assert len(esn.history_) == 3
    fixed = ESNRegressor(learn="none", **grouped(how)).fit(X, VALUES)
    np.testing.assert_array_equal(esn.input_weights_, fixed.input_weights_)
    np.testing.assert_array_equal(esn.network_.readout.U, fixed.network_.readout.U)


def test_early_stopping_restores_the_best_weights():
    how = {**toys.FAST, "epochs": 60, "step_size": 0.01, "ridge": 1e-3, "leak": (0.3, 1.0)}
    held_out = toys.echoes(1, sequences=8)
    esn = ESNRegressor(**grouped(how, patience=4)).fit(X, VALUES, validation=held_out)
    errors = [row["valid_error"] for row in esn.history_]
    best = int(np.argmin(errors)) + 1
    assert 1 < best == len(errors) - 4 < 56
    again = ESNRegressor(**grouped(how, patience=None))
    again.fit(X, VALUES, validation=held_out, callback=lambda row: row["epoch"] == best)
    np.testing.assert_array_equal(esn.input_weights_, again.input_weights_)
    np.testing.assert_array_equal(esn.network_.readout.U, again.network_.readout.U)


def test_callback_sees_every_epoch_and_can_stop():
    rows = []
    esn = ESNRegressor(**grouped({**toys.FAST, "epochs": 6})).fit(X, VALUES, callback=rows.append)
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert rows == list(esn.history_)
    stopped = ESNRegressor(**grouped({**toys.FAST, "epochs": 6})).fit(X, VALUES, callback=lambda row: row["epoch"] == 2)
    assert len(stopped.history_) == 2


@pytest.mark.parametrize("kind", BOTH)
def test_interrupted_fit_is_usable(kind):
    def press(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    y = LABELS if kind is ESNClassifier else VALUES
    how = toys.FAST | {"epochs": 50} | ({"refine_epochs": 0} if kind is ESNClassifier else {})
    esn = kind(**grouped(how))
    with pytest.raises(KeyboardInterrupt):
        esn.fit(X, y, callback=press)
    assert len(esn.history_) == 2
    stopped = kind(**grouped(how)).fit(X, y, callback=lambda row: row["epoch"] == 2)
    for a, b in zip(esn.predict(X), stopped.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_interrupted_before_the_first_epoch_leaves_things_as_they_were(monkeypatch):
    esn = ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES)
    before = esn.predict(X[0])

    def press(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("echolearn.readout.solver.collect", press)
    with pytest.raises(KeyboardInterrupt):
        esn.fit(X, VALUES)
    monkeypatch.undo()
    np.testing.assert_array_equal(esn.predict(X[0]), before)


@pytest.mark.parametrize("spoil", [{"y": VALUES[:3]}, {"callback": lambda row: 1 / 0}, {"X": [X[0][:, :1]] * 8}])
def test_a_failed_fit_leaves_the_estimator_as_it_was(spoil):
    esn = ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES)
    before = esn.predict(X[0])
    with pytest.raises((ValueError, ZeroDivisionError)):
        esn.fit(**{"X": X, "y": VALUES, **spoil})
    np.testing.assert_array_equal(esn.predict(X[0]), before)
    assert not hasattr(clone(esn), "classes_")


EXPLOSIONS = {
    "huge step": {"step_size": 1e6},
    "absurd step": {"step_size": 1e300},
    "huge FISTA step": {
        "optimizer": "fista",
        "step_size": 1e8,
        "batch_size": None,
        "leak": 1.0,
        "learn_leak": False,
    },
    "relu": {"activation": "relu", "spectral_radius": 5.0, "leak": 0.9},
    "identity": {"activation": "identity", "spectral_radius": 3.0, "leak": 0.9},
    "identity, step": {"activation": "identity", "step_size": 10.0},
    "printed momentum": {"optimizer": "fista", "momentum": "printed", "step_size": 10.0, "batch_size": None},
}


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.EchoStateWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("how", EXPLOSIONS)
def test_explosions_never_end_in_nan(kind, how, dtype):
    """Either a clear error, or finite weights and predictions (with a warning where training backed off)."""
    rng = np.random.default_rng(0)
    long = [rng.normal(size=(150, 2)) for _ in range(6)]
    y = [(x[:, 0] > 0) * 1 if kind is ESNClassifier else x[:, 0] for x in long]
    esn = kind(**grouped({**toys.FAST, "dtype": dtype, **EXPLOSIONS[how]}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        warnings.filterwarnings("ignore", "ridge=")
        try:
            esn.fit(long, y)
        except (FloatingPointError, ValueError) as problem:
            assert "spectral radius" in str(problem) or "step_size" in str(problem)  # noqa: PT017
            return
    r = esn.reservoir_
    for weights in (r.W, r.W_rec.data, r.leak, esn.network_.readout.U):
        assert np.isfinite(weights).all()
    answer = esn.predict_proba if kind is ESNClassifier else esn.predict
    assert np.isfinite(np.concatenate(answer(long))).all()


def long_noise():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(300, 2)) for _ in range(6)]
    return X, [x[:, 0] for x in X]


def test_backing_off_and_giving_up_are_reported():
    how = {"activation": "identity", "leak": 1.0, "learn_leak": False, "ridge": 1.0}
    esn = ESNRegressor(**grouped(toys.FAST, how, step_size=1e3))
    with pytest.warns(TrainingWarning) as found:
        esn.fit(*long_noise())
    texts = [str(w.message) for w in found]
    assert all("epoch 1 diverged" in t and "tried again with step_size=" in t for t in texts[:-1])
    assert "training stopped in epoch 1" in texts[-1]
    assert "Try a smaller step_size in `learning`, or scale X to about 1" in texts[-1]
    untouched = ESNRegressor(**grouped(toys.FAST, {**how, "learn": "none"})).fit(*long_noise())
    np.testing.assert_array_equal(
        esn.network_.readout.U, untouched.network_.readout.U
    )  # the best weights so far are the first ones


def test_weights_that_explode_at_the_end_of_an_epoch_are_not_kept():
    how = {"activation": "relu", "leak": (0.1, 1.0), "learn_leak": False, "ridge": 1.0, "step_size": 1.0}
    esn = ESNRegressor(**grouped({**toys.FAST, "epochs": 8}, how))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        esn.fit(*long_noise())
    assert np.isfinite(np.concatenate(esn.predict(long_noise()[0]))).all()


@pytest.mark.parametrize("kind", BOTH)
def test_no_more_states_than_a_batch_at_a_time(kind, monkeypatch):
    """Every call that makes states gets at most one group of frames (or one sequence), never all the data."""
    rng = np.random.default_rng(0)
    long = [rng.normal(size=(100, 2)) for _ in range(40)]
    y = [(x[:, 0] > 0) * 1 if kind is ESNClassifier else x[:, 0] for x in long]
    sizes = []

    def spy(reservoir, batch, *h0, **rest):
        sizes.append(batch.frames)
        return run(reservoir, batch, *h0, **rest)

    for module in ("view", "network"):
        monkeypatch.setattr(f"echolearn.readout.{module}.run", spy)
    monkeypatch.setattr(views, "MAX_FRAMES_PER_PASS", 500)
    monkeypatch.setattr("echolearn.readout.network.MAX_FRAMES_PER_PASS", 500)
    monkeypatch.setattr("echolearn.readout.softmax.MAX_FRAMES_PER_PASS", 500)
    monkeypatch.setattr("echolearn.readout.softmax.FRAMES_PER_BATCH", 125)
    esn = kind(**grouped({**toys.FAST, "batch_size": 5, "epochs": 2})).fit(long, y)
    esn.predict(long)
    assert sum(sizes) > 3 * 4000
    assert max(sizes) <= 500
