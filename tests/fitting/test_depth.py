"""The fit of deep networks: every choice beside the one that would be wrong."""

from dataclasses import replace
from threading import Event

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import toys
from echolearn import DeepESNClassifier, DeepESNRegressor
from echolearn.exceptions import CheckpointError, PoorFitWarning, TrainingWarning
from echolearn.fitting import depth
from echolearn.modelfile import checkpoint as checkpoints
from echolearn.modelfile.checkpoint import Checkpoint
from echolearn.readout.deep_network import feature_statistics
from echolearn.readout.softmax import SOFTMAX_STRENGTHS
from echolearn.sequences.dataset import Dataset
from echolearn.training.objectives.deep_network import DeepObjective
from threadpools import thread_pool

pytestmark = pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")  # the networks are small

X, LABELS = toys.labels(sequences=12)
VALUES = toys.echoes(sequences=12)[1]
RISING_X, RISING = toys.rising(sequences=16)


def classifier(**settings):
    return DeepESNClassifier(**{"units": 6, "layers": 2, "epochs": 3, **settings})


def regressor(**settings):
    return DeepESNRegressor(**{"units": 6, "layers": 2, "epochs": 3, **settings})


def same(a, b):
    """Check every weight, and every row of history but its seconds."""
    for one, other in zip(a.network_.stacks, b.network_.stacks, strict=True):
        for name, value in other.weights.items():
            np.testing.assert_array_equal(one.weights[name], value, err_msg=name)
    np.testing.assert_array_equal(a.network_.readout.U, b.network_.readout.U)
    for one, other in zip(a.history_, b.history_, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def differs(a, b):
    return any((one.weights["1/W_in"] != other.weights["1/W_in"]).any()
               for one, other in zip(a.network_.stacks, b.network_.stacks, strict=True))  # fmt: skip


@pytest.fixture
def objectives(monkeypatch):
    """The objectives of all fits, each with its weights after every epoch in `by_epoch`."""
    found, init, row = [], DeepObjective.__init__, DeepObjective.row

    def recorded(self, *given, **more):
        init(self, *given, **more)
        self.by_epoch = []
        found.append(self)

    def noted(self, *given):
        self.by_epoch.append(self.weights)
        return row(self, *given)

    monkeypatch.setattr(DeepObjective, "__init__", recorded)
    monkeypatch.setattr(DeepObjective, "row", noted)
    return found


# ---------------------------------------------------------------- epochs


@pytest.mark.parametrize(
    ("sequences", "batch_size", "epochs"),
    [(1, 4, 40), (100, 4, 40), (400, 4, 20), (440, 4, 19), (1000, 4, 8), (100_000, 4, 5), (4000, 40, 20)],
)
def test_by_default_epochs_are_as_many_as_make_enough_updates(sequences, batch_size, epochs):
    assert depth.epochs_for({"epochs": None, "batch_size": batch_size}, sequences) == epochs
    assert depth.epochs_for({"epochs": 3, "batch_size": batch_size}, sequences) == 3


def test_the_default_epochs_of_a_fit_follow_its_data(monkeypatch):
    monkeypatch.setattr(depth, "DEFAULT_UPDATES", 12)
    monkeypatch.setattr(depth, "MIN_EPOCHS", 1)
    for sequences, batch_size, epochs in ((12, 4, 4), (6, 4, 6), (12, 6, 6)):
        esn = classifier(epochs=None, learning={"batch_size": batch_size}).fit(X[:sequences], LABELS[:sequences])
        assert len(esn.history_) == epochs


@pytest.mark.parametrize("make", [classifier, regressor])
def test_the_best_epoch_on_held_out_data_is_kept(make, objectives, monkeypatch):
    errors = iter([0.9, 0.5, 0.2, 0.7, 0.3])  # at the start, and after each of four epochs
    monkeypatch.setattr(depth, "mean_error_of", lambda *_: next(errors))
    y = LABELS if make is classifier else VALUES
    esn = make(epochs=4, validation_fraction=0.25).fit(X, y)
    best = objectives[0].by_epoch[1]
    np.testing.assert_array_equal(esn.network_.reservoir.weights["1/W_in"], best["1/W_in"])
    assert [row["valid_error"] for row in esn.history_] == [0.5, 0.2, 0.7, 0.3]
    assert len(objectives[0].data.X) == 9
    if make is classifier:
        np.testing.assert_array_equal(esn.readout_weights_, best["V"])


def test_without_held_out_data_the_last_epoch_is_kept(objectives):
    esn = classifier(epochs=4).fit(X, LABELS)
    last = objectives[0].by_epoch[-1]
    for name, value in esn.network_.reservoir.weights.items():
        np.testing.assert_array_equal(value, last[name])
    np.testing.assert_array_equal(esn.intercept_, last["v"])
    assert len(objectives[0].data.X) == len(X)
    assert "valid_error" not in esn.history_[0]


def test_the_validation_error_is_the_share_of_wrong_labels_or_the_squared_error():
    esn = classifier().fit(X, LABELS)
    inputs = [esn.inputs_.encode(x, "float32") for x in X]
    data = Dataset(inputs, [(y == "low").astype(int) for y in LABELS], 2, True, np.dtype("f4"))  # sorted: high, low
    right = [answers == y for answers, y in zip(esn.predict(X), LABELS, strict=True)]
    assert depth.mean_error_of(esn.network_, data, esn.codec_.error) == pytest.approx(1 - np.concatenate(right).mean())
    weights = [np.arange(len(y)) % 3 for y in LABELS]
    share = np.average(np.concatenate(right), weights=np.concatenate(weights))
    weighted = replace(data, weights=weights)
    assert depth.mean_error_of(esn.network_, weighted, esn.codec_.error) == pytest.approx(1 - share)
    esn = regressor().fit(RISING_X, RISING.astype(float))
    T = [np.array([(y - esn.target_mean_[0]) / esn.target_scale_[0]]) for y in RISING]
    whole = Dataset([esn.inputs_.encode(x, "float32") for x in RISING_X], T, None, False, np.dtype("f4"))
    squares = ((esn.predict(RISING_X) - RISING) / esn.target_scale_[0]) ** 2
    assert depth.mean_error_of(esn.network_, whole, esn.codec_.error) == pytest.approx(squares.mean(), rel=1e-4)


def test_given_held_out_data_are_used_and_patience_ends_the_learning(monkeypatch):
    seen = []
    monkeypatch.setattr(depth, "mean_error_of", lambda network, data, loss: seen.append(data) or 1.0)
    esn = regressor(epochs=20, learning={"patience": 3}).fit(X, VALUES, validation=(X[:2], VALUES[:2]))
    assert len(esn.history_) == 3  # none was better than the start
    assert {len(data.X) for data in seen} == {2}


@pytest.mark.parametrize(("make", "y"), [(regressor, VALUES), (classifier, LABELS)])
def test_a_network_without_epochs_is_the_one_drawn(make, y, objectives):
    esn = make(epochs=0).fit(X, y)
    for name, value in esn.network_.reservoir.weights.items():
        np.testing.assert_array_equal(value, objectives[0].weights[name])
    assert len(esn.history_) == 0


def features_of(esn, X):
    """Return what the readout of a classifier sees."""
    inputs = [esn.inputs_.encode(x, "float64") for x in X]
    return esn.network_.rows(esn.network_.features(inputs, "float64"))[0]


def logistic(F, y, strength):
    """Return scikit-learn's model; of two classes it has one column w = 2 V[:, 1], and ||V||² = ||w||² / 2."""
    return LogisticRegression(C=2 / (strength * len(y)), tol=1e-10, max_iter=10_000).fit(F, y)


def test_without_epochs_the_softmax_readout_is_that_of_logistic_regression():
    esn = classifier(epochs=0, dtype="float64").fit(X, LABELS)
    readout, y = esn.network_.readout, np.concatenate(LABELS)
    assert readout.softmax
    expected = logistic(features_of(esn, X), y, readout.strength).predict_proba(features_of(esn, X[:3]))
    np.testing.assert_allclose(np.concatenate(esn.predict_proba(X[:3])), expected, atol=2e-3)


def test_without_epochs_the_penalty_is_the_first_after_which_the_held_out_error_rises():
    train, valid = (X[:8], LABELS[:8]), (X[8:], LABELS[8:])
    esn = classifier(epochs=0, dtype="float64").fit(*train, validation=valid)
    F = features_of(esn, train[0])
    scale = float(F.var(axis=0).sum() / (F.shape[1] + 1) / len(F))  # a column of ones does not vary
    errors = []
    for strength in SOFTMAX_STRENGTHS:
        model = logistic(F, np.concatenate(train[1]), strength * scale)
        P = model.predict_proba(features_of(esn, valid[0]))
        errors.append(log_loss(np.concatenate(valid[1]), P, labels=model.classes_))
    first = next((k for k in range(len(errors) - 1) if errors[k + 1] >= errors[k]), len(errors) - 1)
    assert esn.network_.readout.strength == pytest.approx(SOFTMAX_STRENGTHS[first] * scale, rel=0.2)


# ---------------------------------------------------------------- dropout


def steps_of(count, weights=None):
    """Return a dataset of two sequences with so many labelled steps."""
    X = [np.zeros((count // 2, 1)), np.zeros((count - count // 2, 1))]
    return Dataset(X, [np.zeros(len(x), int) for x in X], 2, True, np.dtype("f4"), weights=weights)


@pytest.mark.parametrize(
    ("weights", "targets", "dropout"),
    [(1000, 1000, 0.1), (1000, 4000, 0.05), (4000, 1000, 0.2), (9000, 1000, 0.3), (90_000, 1000, 0.3)],
)
def test_by_default_dropout_follows_the_number_of_weights_per_target(weights, targets, dropout):
    assert depth.dropout_for({"dropout": None}, weights, steps_of(targets)) == pytest.approx(dropout)
    assert depth.dropout_for({"dropout": 0.25}, weights, steps_of(targets)) == 0.25


def test_only_targets_that_count_lower_the_dropout():
    half = [np.arange(1000) % 2 * 7.0 for _ in range(2)]  # a weight of zero is no target; the size of others is nothing
    assert depth.dropout_for({"dropout": None}, 1000, steps_of(2000, half)) == pytest.approx(0.1)
    whole = replace(steps_of(2000), y=[np.array(0), np.array(1)], per_step=False)
    assert depth.dropout_for({"dropout": None}, 8, whole) == pytest.approx(0.2)
    weighted = replace(whole, weights=[np.array(0.0), np.array(3.0)])
    assert depth.dropout_for({"dropout": None}, 4, weighted) == pytest.approx(0.2)


@pytest.mark.parametrize(("make", "y"), [(classifier, LABELS), (regressor, VALUES)])
def test_fits_follow_the_rule(make, y, objectives):
    make().fit(X, y)
    make(units=16).fit(X, y)
    small, large = (o.plan.dropout for o in objectives)
    counts = [sum(value.size for value in o.weights.values()) for o in objectives]
    steps = sum(map(len, X))
    assert small == pytest.approx(0.1 * np.sqrt(counts[0] / steps))
    assert large == pytest.approx(0.1 * np.sqrt(counts[1] / steps))
    assert 0 < small < large < 0.3


# ---------------------------------------------------------------- data


def test_a_few_long_series_are_learned_in_windows(objectives):
    rng = np.random.default_rng(0)
    long = [rng.normal(size=(1000, 1)), rng.normal(size=(450, 1))]
    targets = [np.roll(x[:, 0], 1) for x in long]
    regressor(epochs=1).fit(long, targets)
    data = objectives[-1].data
    assert len(data.X) == 14
    assert data.lengths.max() <= 213
    assert sum(w.sum() for w in data.weights) == 1450  # every target counts once
    first = np.asarray(data.weights[1])
    assert (first[:100] == 0).all()  # steps in which the states settle
    assert (first[100:] == 1).all()
    mean, scale = np.concatenate(long).mean(), np.concatenate(long).std()
    np.testing.assert_allclose(data.X[1][:, 0], ((long[0] - mean) / scale)[:200, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([np.ones((200, 1)), np.zeros((150, 1))], [np.arange(200.0), np.arange(150.0)]),  # not long
        ([np.full((450, 1), float(k)) for k in range(5)], [np.arange(450.0)] * 5),  # not few
        ([np.full((450, 1), float(k)) for k in range(3)], [1.0, 2.0, 4.0]),  # one target per sequence
    ],
)
def test_other_sequences_stay_whole(X, y, objectives):
    regressor(epochs=1).fit(X, y)
    assert objectives[0].data.lengths.tolist() == [len(x) for x in X]


def test_weights_of_zero_missing_labels_and_missing_values_are_no_targets():
    """Other targets there change no bit, and marks say the same as weights."""
    there = [np.arange(len(y)) % 3 > 0 for y in LABELS]
    flipped = [np.where(w, y, "low") for y, w in zip(LABELS, there, strict=True)]
    marked = [np.where(w, y, "?") for y, w in zip(LABELS, there, strict=True)]
    weights = [w.astype(float) for w in there]
    plain = classifier().fit(X, LABELS, sample_weight=weights)
    same(classifier().fit(X, flipped, sample_weight=weights), plain)
    same(classifier(ignore_label="?").fit(X, marked), plain)
    assert differs(classifier().fit(X, LABELS), plain)
    gaps = [np.where(w[:, None], v, np.nan) for v, w in zip(VALUES, there, strict=True)]
    values = regressor().fit(X, gaps)
    assert np.isfinite(values.readout_weights_).all()
    assert values.network_.readout.statistics.n == sum(w.sum() for w in there)


def test_equal_weights_change_nothing_and_others_do():
    plain = classifier(dropout=0.0, dtype="float64").fit(X, LABELS)
    doubled = classifier(dropout=0.0, dtype="float64").fit(X, LABELS, sample_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(doubled.readout_weights_, plain.readout_weights_, atol=1e-8)
    uneven = classifier(dropout=0.0, dtype="float64").fit(X, LABELS, sample_weight=np.arange(len(X)))
    assert np.abs(uneven.readout_weights_ - plain.readout_weights_).max() > 1e-3


def test_class_weights_are_weights_of_their_labels():
    given = {"low": 0.5, "high": 4.0}
    weights = [np.array([given[label] for label in y]) for y in LABELS]
    weighted = classifier(class_weight=given).fit(X, LABELS)
    same(weighted, classifier().fit(X, LABELS, sample_weight=weights))
    shares = [np.mean(np.concatenate(esn.predict(X)) == "high") for esn in (weighted, classifier().fit(X, LABELS))]
    assert shares[0] > shares[1]


def test_no_target_at_all_is_refused():
    with pytest.raises(ValueError, match="sample_weight is zero everywhere"):
        classifier().fit(X, LABELS, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match="no target counts"):
        classifier(class_weight={"low": 0, "high": 1}).fit(X, LABELS, sample_weight=[y == "low" for y in LABELS])


@pytest.mark.parametrize("missing", ["mean", "carry"])
def test_gaps_in_the_inputs(missing, objectives):
    gaps = [np.where(np.arange(x.size).reshape(x.shape) % 7 == 3, np.nan, x) for x in X]
    esn = classifier(missing=missing).fit(gaps, LABELS)
    assert esn.network_.reservoir.n_in == (4 if missing == "carry" else 2)
    assert all(np.isfinite(x).all() for x in objectives[0].data.X)
    assert np.isfinite(np.concatenate(esn.predict_proba(gaps))).all()
    with pytest.raises(ValueError, match="NaN"):
        classifier().fit(gaps, LABELS)


# ---------------------------------------------------------------- the readout


def by_hand(network, data, mu):
    """Return the ridge readout of the features, with an intercept that is not penalised, solved plainly."""
    F, T = network.rows(network.features(data.X, data.dtype))[0].astype(np.float64), np.concatenate(data.y)
    F = np.hstack([F, np.ones((len(F), 1))])
    penalty = mu * np.eye(F.shape[1])
    penalty[-1, -1] = 0
    return np.linalg.solve(F.T @ F + penalty, F.T @ T)


def test_the_ridge_readout_is_solved_on_the_features_of_all_data():
    esn = regressor(ridge=0.3, dtype="float64", validation_fraction=0.25).fit(X, VALUES)
    inputs = [esn.inputs_.encode(x, "float64") for x in X]
    targets = [(v - esn.target_mean_) / esn.target_scale_ for v in VALUES]
    data = Dataset(inputs, targets, None, True, np.dtype(float))
    np.testing.assert_allclose(esn.network_.readout.U, by_hand(esn.network_, data, 0.3), rtol=1e-6, atol=1e-9)
    assert esn.ridge_ == 0.3


def test_a_ridge_is_chosen_by_generalised_cross_validation():
    esn = regressor(ridge="auto", dtype="float64").fit(X, VALUES)
    s = esn.network_.readout.statistics

    def gcv(mu):
        penalty = mu * np.eye(len(s.G))
        penalty[-1, -1] = 0
        A = np.linalg.inv(s.G + penalty)
        U = A @ s.Q
        error = s.tt - 2 * np.vdot(U, s.Q) + np.vdot(U, s.G @ U)
        return error / (s.n - np.trace(A @ s.G)) ** 2

    path = esn.ridge_ * np.array([0.1, 1.0, 10.0])
    assert gcv(path[1]) <= min(gcv(path[0]), gcv(path[2])) * (1 + 1e-6)
    listed = regressor(ridge=[1e-6, 1e3], dtype="float64").fit(X, VALUES)
    assert listed.ridge_ == (1e-6 if gcv(1e-6) < gcv(1e3) else 1e3)


def test_the_readout_of_a_classifier_is_learned_or_solved():
    soft, ridge = classifier().fit(X, LABELS), classifier(readout="ridge").fit(X, LABELS)
    assert soft.network_.readout.softmax
    assert not ridge.network_.readout.softmax
    assert soft.network_.readout.statistics is None
    assert ridge.network_.readout.statistics is not None
    for name, value in soft.network_.reservoir.weights.items():  # the layers are the same: learned on the cross entropy
        np.testing.assert_array_equal(ridge.network_.reservoir.weights[name], value)
    P = ridge.predict_proba(X[0])
    np.testing.assert_allclose(P.sum(axis=1), 1)


def test_weights_and_pooling_are_in_the_statistics():
    esn = regressor(dtype="float64").fit(RISING_X, RISING.astype(float))
    network = esn.network_
    data = Dataset(RISING_X, [np.array([float(y)]) for y in RISING], None, False, np.dtype(float))
    s = feature_statistics(network, data)
    rows = np.vstack([network.features([x], float)[0].q.mean(axis=0) for x in RISING_X])
    rows = np.hstack([rows, np.ones((len(rows), 1))])
    np.testing.assert_allclose(s.G, rows.T @ rows, atol=1e-10)
    np.testing.assert_allclose(s.Q[:, 0], rows.T @ RISING, atol=1e-10)
    weights = [np.array(float(k % 3)) for k in range(len(RISING_X))]
    w = np.array(weights)
    weighted = feature_statistics(network, replace(data, weights=weights))
    np.testing.assert_allclose(weighted.G, (rows * w[:, None]).T @ rows, atol=1e-10)
    assert weighted.n == w.sum()


# ---------------------------------------------------------------- augmentation


def test_augment_is_called_once_per_sequence_and_epoch_with_generators_of_its_own():
    calls = []

    def shifted(x, rng):
        assert x.flags.writeable
        calls.append((len(x), x[0, 0], rng.integers(2**31)))
        return x + 0.1 * rng.normal(size=x.shape)

    esn = classifier(augment=shifted).fit(X, LABELS)
    assert len(calls) == 3 * len(X)
    assert sorted({first for _, first, _ in calls}) == sorted(x[0, 0] for x in X)  # the frames as they were given
    assert len({drawn for *_, drawn in calls}) == len(calls)
    first, calls[:] = sorted(calls), []
    same(classifier(augment=shifted).fit(X, LABELS), esn)
    assert sorted(calls) == first
    assert differs(classifier().fit(X, LABELS), esn)
    other = classifier(augment=shifted, random_state=1).fit(X, LABELS)
    assert not {drawn for *_, drawn in calls[len(first) :]} & {drawn for *_, drawn in first}
    assert differs(other, esn)


def test_augmenting_by_nothing_changes_no_bit_and_held_out_data_are_left_alone():
    calls = []
    same(classifier(augment=lambda x, rng: x).fit(X, LABELS), classifier().fit(X, LABELS))
    kept = classifier(augment=lambda x, rng: calls.append(len(x)) or x, validation_fraction=0.25)
    same(kept.fit(X, LABELS), classifier(validation_fraction=0.25).fit(X, LABELS))
    assert len(calls) == 3 * 9


def test_windows_are_augmented_as_they_are_learned():
    x, shapes = np.random.default_rng(1).normal(size=(900, 1)), []
    how = {"epochs": 1, "augment": lambda w, rng: shapes.append(w.shape) or w}
    same(regressor(**how).fit(x, x[:, 0]), regressor(epochs=1).fit(x, x[:, 0]))
    assert len(shapes) == 9
    assert max(shapes) == (200, 1)


def test_what_augment_returns_is_checked():
    with pytest.raises(ValueError, match=r"augment returned shape \(\d+, 2\) for a sequence of shape"):
        classifier(augment=lambda x, rng: x[1:]).fit(X, LABELS)
    with pytest.raises(ValueError, match="augment returned NaN"):
        classifier(augment=lambda x, rng: x * np.nan).fit(X, LABELS)
    gaps = classifier(missing="mean", augment=lambda x, rng: np.where(rng.random(x.shape) < 0.1, np.nan, x))
    assert np.isfinite(gaps.fit(X, LABELS).readout_weights_).all()


# ---------------------------------------------------------------- seeds, threads, checkpoints, Ctrl-C


def test_the_same_seed_gives_the_same_bits_with_any_number_of_threads():
    fits = []
    for count in (1, 2):
        with thread_pool(count):
            fits.append([make(dropout=0.2, ensemble=n).fit(X, y) for make, y, n in (
                (classifier, LABELS, 1), (classifier, LABELS, 3), (regressor, VALUES, 2))])  # fmt: skip
    for one, other in zip(*fits, strict=True):
        same(one, other)
    assert differs(classifier(dropout=0.2, random_state=1).fit(X, LABELS), fits[0][0])


def test_generators_and_none():
    one, two = (classifier(random_state=np.random.default_rng(5)).fit(X, LABELS) for _ in range(2))
    same(one, two)
    generator = np.random.default_rng(5)
    first = classifier(random_state=generator).fit(X, LABELS)
    same(first, one)
    assert differs(classifier(random_state=generator).fit(X, LABELS), one)
    assert differs(*(classifier(random_state=None).fit(X, LABELS) for _ in range(2)))


def test_an_ensemble_has_the_single_network_and_others():
    single, several = classifier().fit(X, LABELS), classifier(ensemble=3).fit(X, LABELS)
    first, *others = several.network_.stacks
    for name, value in single.network_.reservoir.weights.items():
        np.testing.assert_array_equal(first.weights[name], value)
        assert all(name.endswith("c") or (one.weights[name] != value).any() for one in others)
    np.testing.assert_allclose(several.readout_weights_[:6], single.readout_weights_ / 3, rtol=1e-12)
    assert {row["network"] for row in several.history_} == {1, 2, 3}
    assert len(several.history_) == 9


class Cut(Exception):
    pass


KEPT = {
    "labels": (classifier, {"dropout": 0.2}),
    "held out": (classifier, {"validation_fraction": 0.25}),
    "values": (regressor, {"dtype": "float64"}),
    "ensemble": (classifier, {"ensemble": 2, "augment": lambda x, rng: x + rng.normal(size=x.shape)}),
    "a generator": (regressor, {"random_state": 3}),
}


@pytest.mark.parametrize("kind", KEPT)
def test_cut_off_after_every_state_a_fit_ends_in_the_same_bits(kind, tmp_path, monkeypatch):
    make, settings = KEPT[kind]
    settings, y = {**settings, "epochs": 2}, LABELS if make is classifier else VALUES

    def new():
        own = {"random_state": np.random.default_rng(3)} if kind == "a generator" else {}
        return make(**settings | own)

    straight, save, cuts = new().fit(X, y), Checkpoint.save, 0

    def save_and_stop(self, tensors, state):
        save(self, tensors, state)
        raise Cut

    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN_STATES", 0.0)
    monkeypatch.setattr(Checkpoint, "save", save_and_stop)
    while cuts < 100:
        try:
            resumed = new().fit(X, y, checkpoint=tmp_path)
            break
        except Cut:
            cuts += 1
    same(resumed, straight)
    assert cuts > 2  # some inside of epochs


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    classifier().fit(X, LABELS, checkpoint=tmp_path)
    for changes, words in (
        ({"epochs": 4}, "epochs: 3 then, 4 now"),
        ({"dropout": 0.3}, "dropout"),
        ({"random_state": 1}, "random_state"),
        ({"augment": lambda x, rng: x}, "augment: False then, True now"),
    ):
        with pytest.raises(CheckpointError, match=words):
            classifier(**changes).fit(X, LABELS, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="data"):
        classifier().fit(X[1:], LABELS[1:], checkpoint=tmp_path)
    same(classifier(verbose=0).fit(X, LABELS, checkpoint=tmp_path), classifier().fit(X, LABELS))
    with pytest.raises(ValueError, match=r"checkpoint= with random_state=None"):
        classifier(random_state=None).fit(X, LABELS, checkpoint=tmp_path / "other")


def test_ctrl_c_keeps_what_was_learned(monkeypatch):
    esn = classifier(epochs=50)
    with pytest.raises(KeyboardInterrupt):
        esn.fit(X, LABELS, callback=toys.interrupt_at(2))
    assert len(esn.history_) == 2
    errors = iter([0.9, 0.1, 0.5, 0.6])
    monkeypatch.setattr(depth, "mean_error_of", lambda *_: next(errors))
    best = classifier(epochs=50)
    with pytest.raises(KeyboardInterrupt):
        best.fit(X, LABELS, validation=(X[:2], LABELS[:2]), callback=toys.interrupt_at(2))
    one = classifier(epochs=50).fit(X, LABELS, callback=lambda row: row["epoch"] == 1)
    np.testing.assert_array_equal(best.readout_weights_, one.readout_weights_)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_all_networks_of_an_ensemble(threads):
    esn, begun = classifier(epochs=200, ensemble=2), Event()

    def interrupt_the_first(row):
        if row["network"] == 2:
            begun.set()
            return None
        if threads == 2:
            assert begun.wait(60)  # the other thread may be slow to begin
        return toys.interrupt_at(3)(row)

    with thread_pool(threads), pytest.raises(KeyboardInterrupt):
        esn.fit(X, LABELS, callback=interrupt_the_first)
    assert len(esn.history_) < 200
    assert len(esn.network_.stacks) == (1 if threads == 1 else 2)  # one that had not begun is left out
    assert np.isfinite(np.concatenate(esn.predict_proba(X))).all()


def test_a_failure_in_one_network_of_an_ensemble_is_passed_on():
    def fails(row):
        if row["network"] == 2:
            raise RuntimeError("no")

    with thread_pool(2), pytest.raises(RuntimeError, match="no"):
        classifier(epochs=200, ensemble=2).fit(X, LABELS, callback=fails)


def test_a_callback_ends_the_learning():
    rows = []
    esn = regressor(epochs=50).fit(X, VALUES, callback=lambda row: rows.append(row) or row["epoch"] == 2)
    assert [row["epoch"] for row in rows] == [1, 2]
    assert list(rows) == list(esn.history_)


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"units": 7}, "units=7; expected an even whole number"),
        ({"units": 0}, "units=0; expected an even"),
        ({"units": "8"}, "units='8'"),
        ({"layers": 0}, "layers=0; expected a whole number >= 1"),
        ({"dropout": 1.0}, "dropout=1.0; expected a number in"),
        ({"leak": 0.5}, r"leak=0.5; expected a pair of numbers \(low, high\)"),
        ({"leak": (0.0, 0.5)}, "leak="),
        ({"leak": (0.5, 0.1)}, "leak="),
        ({"leak": ("a", "b")}, "leak="),
        ({"leak": (0.1, 1.0)}, "leak="),
        ({"angle": -0.1}, "angle=-0.1"),
        ({"angle": 4.0}, "angle=4.0"),
        ({"augment": "shift"}, "augment='shift'; expected None, or a function"),
        ({"ensemble": 0}, "ensemble=0"),
        ({"epochs": -1}, "epochs=-1"),
        ({"readout": "svm"}, "readout='svm'"),
        ({"ridge": -1.0}, "ridge=-1.0"),
        ({"learning": {"step_size": 0}}, "step_size=0"),
        ({"learning": {"batch_size": None}}, "batch_size=None"),
        ({"learning": {"batch_size": "auto"}}, "batch_size='auto'"),
        ({"learning": {"patience": 0}}, "patience=0"),
        ({"learning": {"stepsize": 1}}, "no setting 'stepsize'; did you mean step_size"),
        ({"validation_fraction": 1.0}, "validation_fraction=1.0"),
        ({"units": 2, "bidirectional": True}, "a pair of units for each direction"),
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"random_state": -1}, "random_state=-1"),
    ],
)
def test_wrong_settings_are_refused(settings, words):
    esn = classifier(**settings)
    with pytest.raises(ValueError, match=words):
        esn.fit(X, LABELS)
    assert not hasattr(esn, "model_")


def test_a_trivial_result_is_reported():
    noise = [np.random.default_rng(k).permutation(y) for k, y in enumerate(LABELS)]
    with pytest.warns(PoorFitWarning, match=r"of the training labels are right: .*more units or layers"):
        classifier(epochs=1).fit(X, noise)
    with pytest.warns(PoorFitWarning, match="of the held-out labels are right"):
        classifier(epochs=1, validation_fraction=0.4).fit(X, noise)
    blank = [np.zeros((len(x), 1)) for x in X]
    with pytest.warns(PoorFitWarning, match="the squared error on training data is 1 of the variance"):
        regressor(epochs=1).fit(blank, [np.random.default_rng(k).normal(size=len(x)) for k, x in enumerate(X)])


def test_the_result_is_examined_on_held_out_data_where_there_are_any(monkeypatch):
    seen = []
    monkeypatch.setattr(depth, "warn_of_outcome", lambda examination, codec: seen.append(examination))
    regressor(epochs=1).fit(X[:9], VALUES[:9], validation=(X[9:], VALUES[9:]))
    regressor(epochs=1, validation_fraction=0.0).fit(X, VALUES)
    held_out, whole = ([len(x) for x in examination.outcome.inputs] for examination in seen)
    assert held_out == [len(x) for x in X[9:]]
    assert whole == [len(x) for x in X]
    assert [examination.data for examination in seen] == ["held-out", "training"]


def test_steps_that_are_too_large_are_tried_again_smaller():
    with pytest.warns(TrainingWarning, match="diverged|stopped"):
        esn = regressor(epochs=2, learning={"step_size": 1e30}).fit(X, VALUES)
    assert np.isfinite(np.concatenate(esn.predict(X))).all()
