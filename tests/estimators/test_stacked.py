"""Stacks: their gradients against complex steps through slow layers, and what the estimators promise."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import reference as ref
import toys
from echolearn import ESNClassifier, ESNRegressor, StackedClassifier, StackedRegressor, load
from echolearn.estimators import saving as storage
from echolearn.estimators.saving import ModelFileError
from echolearn.gradients import stacked as joint
from echolearn.gradients.stacked import SEES, Layer, slopes
from echolearn.modelfile import checkpoint as checkpoints
from echolearn.readout.collect import Task
from echolearn.readout.statistics import Statistics
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import pack
from echolearn.sequences.dataset import Dataset
from echolearn.training.objectives import stacked as together

N_OUT = 3
POOLINGS = [None, None, "mean", "last", 2]


def draw(seed):
    """Layers of random weights, sequences and targets: for the witness, and as the code takes them."""
    rng = np.random.default_rng([11, seed])
    sees, n_in, pooling = SEES[seed % 3], 2, POOLINGS[seed % 5]
    units = rng.integers(2, 5, 2 + seed % 2)
    ws, hows, wide = [], [], n_in
    for N in units:
        ws.append(ref.network(rng, N=int(N), n_in=wide, bias=bool(rng.integers(2))))
        lookback = [None, None, 2][rng.integers(3)]
        hows.append({"washout": int(rng.integers(3)), "lookback": lookback, "direct": bool(rng.integers(2))})
        wide = N_OUT + {"output": 0, "output+input": n_in, "output+hidden": int(N)}[sees]
    hows[-1]["pooling"] = pooling
    scales = [rng.uniform(0.5, 2, N_OUT) for _ in ws]
    ridges = 10.0 ** rng.uniform(-2, 1, len(ws))
    X = [rng.normal(size=(n, n_in)) for n in rng.integers(5, 10, 8)]
    shape = (lambda x: ()) if pooling else (lambda x: (len(x),))
    labels = [rng.integers(0, N_OUT, shape(x)) for x in X]
    layers = [
        Layer(
            Reservoir(**w, activation="tanh"), Task(h["washout"], h["direct"], h.get("pooling"), h["lookback"]), mu, s
        )
        for w, h, mu, s in zip(ws, hows, ridges, scales, strict=True)
    ]
    return ws, X, labels, layers, {"sees": sees, "scales": scales, "hows": hows}, ridges, pooling is None


def piles_of(X, y, per_step):
    return [pack(X[i::2], np.float64, y[i::2], per_step) for i in range(2)]


def assert_derivatives(gradients, ws, witness, about):
    for number, w in enumerate(ws):
        for name, values in w.items():
            if values is None:
                continue
            true = np.zeros_like(values)
            for place in np.ndindex(*values.shape):
                if name != "W_rec" or values[place] != 0:
                    moved = [*ws[:number], None, *ws[number + 1 :]]
                    true[place] = ref.complex_step(
                        w, name, place, lambda own, moved=moved, number=number: witness(_with(moved, number, own))
                    )
            true = true[values != 0] if name == "W_rec" else true
            found = getattr(gradients[number], name)
            assert np.abs(found - true).max() <= 1e-8 * max(np.abs(true).max(), 1e-6), (number, name, about)


def _with(parts, number, part):
    return [*parts[:number], part, *parts[number + 1 :]]


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("kind", ["values", "labels"])
def test_squared_error_through_all_layers(seed, kind):
    ws, X, labels, layers, how, ridges, per_step = draw(seed)
    one_hot = [np.eye(N_OUT)[y] for y in labels]
    rng = np.random.default_rng(seed)
    values = [t + rng.normal(size=t.shape) for t in one_hot]
    y, T = (values, values) if kind == "values" else (labels, one_hot)
    found = slopes(layers, how["sees"], piles_of(X, y, per_step), N_OUT, per_step=per_step)

    def witness(ws):
        return ref.stack_loss(ws, X, T, "tanh", ridges=ridges, **how)

    U = found.readouts[-1][:-1]
    assert found.loss + ridges[-1] * (U * U).sum() == pytest.approx(witness(ws), rel=1e-9)
    assert_derivatives(found.gradients, ws, witness, (seed, how))


@pytest.mark.parametrize("seed", range(15))
def test_cross_entropy_through_all_layers(seed):
    ws, X, labels, layers, how, _, per_step = draw(seed)
    rng = np.random.default_rng(seed)
    shapes = [
        U.shape for _, _, U in ref.stack(ws, X, [np.eye(N_OUT)[y] for y in labels], "tanh", ridges=[1] * 3, **how)
    ]
    V = [rng.normal(size=shape) for shape in shapes]
    T = [np.eye(N_OUT)[y] for y in labels]
    found = slopes(layers, how["sees"], piles_of(X, labels, per_step), N_OUT, per_step=per_step, readouts=V)

    def witness(ws, V=V):
        return ref.stack_entropy(ws, X, T, "tanh", readouts=V, own=joint.OWN, **how)

    assert_derivatives(found.gradients, ws, witness, (seed, how))
    for number, value in enumerate(V):
        way, h = rng.normal(size=value.shape), 1e-30
        slope = witness(ws, _with(V, number, value + 1j * h * way)).imag / h
        assert np.vdot(found.dE_dV[number], way) == pytest.approx(slope, rel=1e-8)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(0, 1000))
def test_running_values_of_equal_batches_are_those_of_a_full_pass(batches, seed):
    rng = np.random.default_rng(seed)
    part = rng.normal(size=(3, 2))
    P, s, share = None, None, 1 / batches
    for i in range(3 * batches):
        P = together.aged(P, part.copy(), share, min(1.0, i * share))
        s = together.aged(s, Statistics(np.eye(3), part.copy(), 2.0, 5.0), share, min(1.0, i * share))
        np.testing.assert_allclose(P, part * batches)
        np.testing.assert_allclose(s.Q, part * batches)
        np.testing.assert_allclose(s.G, np.eye(3) * batches)
        assert s.n == pytest.approx(5 * batches)


def test_full_batch_epochs_take_the_exact_gradient():
    """However many epochs, the sums and P are of the weights as they are: one Adam step is the sign of the gradient."""
    _, X, labels, layers, how, _, _ = draw(0)
    data = Dataset(X, labels, N_OUT, True, np.dtype(float))
    plan = together.Plan(how["sees"], ["both"] * len(layers), [True] * len(layers), 1e-3, 5, None)
    zeros = [Statistics.zeros(1, 1)] * len(layers)  # forgotten at once
    learner = together.Together(together.State(layers, []), data, plan, np.random.default_rng(0), zeros, None)
    learner.epoch(1)
    now = learner.layers
    exact = slopes(now, how["sees"], piles_of(X, labels, True), N_OUT)
    found = learner._slopes(np.arange(len(X)), 1.0)
    for a, b in zip(exact.gradients, found.gradients, strict=True):
        np.testing.assert_allclose(a.W, b.W, rtol=1e-9, atol=1e-12)


HOW = {"connections": 4, "epochs": 3, "batch_size": 4}
LABELLED = toys.labels(sequences=8)
VALUED = toys.echoes(sequences=8)


def classifier(units=(8, 6), how=HOW, **changes):
    return StackedClassifier([ESNClassifier(n, **how) for n in units], **{"joint_epochs": 2, **changes})


def regressor(units=(8, 6), how=HOW, **changes):
    return StackedRegressor([ESNRegressor(n, **how) for n in units], **{"joint_epochs": 2, **changes})


@pytest.mark.parametrize("sees", SEES)
def test_answers_come_in_the_form_of_the_input(sees):
    X, y = LABELLED
    stack = classifier(sees=sees).fit(X, y)
    P = stack.predict_proba(X)
    assert [p.shape for p in P] == [(len(x), 2) for x in X]
    np.testing.assert_allclose(np.exp(stack.predict_log_proba(X[0])), P[0], rtol=1e-4)  # float32, other batches
    joined = stack.predict(np.vstack(X), lengths=[len(x) for x in X])
    np.testing.assert_array_equal(joined, np.concatenate(stack.predict(X)))
    assert stack.score(X, y) == pytest.approx(np.mean(joined == np.concatenate(y)))
    assert len(stack.decision_function(X[0])) == len(X[0])
    X, Y = VALUED
    stack = regressor(sees=sees).fit(X, Y)
    assert stack.predict(X[0]).shape == Y[0].shape
    assert stack.score(X, Y) <= 1


def test_the_layer_above_sees_what_the_one_below_says():
    X, y = LABELLED
    stack = classifier((8, 6, 5), sees="output+hidden").fit(X, y)
    assert [layer.n_features_in_ for layer in stack.layers_] == [2, 2 + 8, 2 + 6]
    first, x = stack.layers_[0], X[0].astype(np.float32)
    passed = stack._inputs([x])[1][0]
    np.testing.assert_allclose(passed[:, :2] / stack._scales[0], first.predict_proba(x), atol=1e-6)
    assert np.vstack(stack._inputs(X)[1])[:, :2].std(axis=0) == pytest.approx([1, 1], rel=0.3)


def test_one_target_a_sequence():
    X, up = toys.rising()
    stack = classifier().fit(X, up)
    assert stack.predict(X).shape == (len(X),)
    assert stack.score(X, up) > 0.9
    values = np.array([[x.mean(), x[-1, 0]] for x in X])
    stack = regressor().fit(X, list(values))
    assert stack.predict(X).shape == values.shape


def test_learning_together_lowers_the_error():
    """On the data it learns from, all layers at once must come further than each for itself."""
    X, Y = VALUED
    how = {**HOW, "batch_size": None, "epochs": 10, "ridge": 1e-2, "dtype": "float64"}
    alone, both = (regressor(how=how, joint_epochs=n, validation_fraction=0.0).fit(X, Y) for n in (0, 20))
    assert both.score(X, Y) > alone.score(X, Y)
    errors = [row["error"] for row in both.history_]
    assert errors[-1] < errors[0]


def test_what_is_learned_is_what_was_asked_for():
    X, y = LABELLED
    stack = StackedClassifier([ESNClassifier(8, learn="none"), ESNClassifier(6, **HOW)], joint_epochs=2)
    stack.set_params(validation_fraction=0.0)  # the newest weights count
    stack.fit(X, y)
    alone = clone(stack).set_params(joint_epochs=0).fit(X, y)
    np.testing.assert_array_equal(stack.layers_[0].input_weights_, alone.layers_[0].input_weights_)
    assert (stack.layers_[1].input_weights_ != alone.layers_[1].input_weights_).any()


def test_the_same_seed_gives_the_same_stack():
    X, y = LABELLED
    first, second, other = (classifier(random_state=seed).fit(X, y) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.decision_function(X[0]), second.decision_function(X[0]))
    assert (first.decision_function(X[0]) != other.decision_function(X[0])).any()
    assert (first.layers_[0].input_weights_[:, :6] != first.layers_[1].input_weights_[:2]).all()


def test_validation_decides_and_progress_is_told(capsys):
    X, y = LABELLED
    rows = []
    stack = classifier(verbose=1).fit(X[2:], y[2:], validation=(X[:2], y[:2]), callback=rows.append)
    assert [row.get("layer") for row in rows] == [1] * 3 + [2] * 3 + [None] * 2
    assert [row["epoch"] for row in stack.history_] == [1, 2]
    assert "valid_error" in stack.history_[0]
    told = capsys.readouterr().err
    assert "layer 1 of 2: 8 units" in told
    assert "all 2 layers together" in told


def test_ctrl_c_keeps_what_was_learned():
    X, y = LABELLED

    def stop(row):
        if "layer" not in row:
            raise KeyboardInterrupt

    stack = classifier()
    with pytest.raises(KeyboardInterrupt):
        stack.fit(X, y, callback=stop)
    assert len(stack.history_) == 1
    assert len(stack.predict(X)) == len(X)


def test_a_fit_that_fails_leaves_the_stack_as_it_was():
    X, y = LABELLED
    stack = classifier().fit(X, y)
    before = stack.predict(X[0])
    with pytest.raises(ValueError, match="y has 3 entries"):
        stack.fit(X, y[:3])
    np.testing.assert_array_equal(stack.predict(X[0]), before)


def test_a_layer_that_runs_away_is_named():
    X, y = LABELLED
    stack = classifier().fit(X, y)
    stack.layers_[0]._U = stack.layers_[0]._U * 1e300
    with pytest.raises(ValueError, match="outputs of layer 1 are not finite"):
        stack.predict(X)


class Killed(Exception):
    pass


@pytest.mark.parametrize("kind", ["softmax", "ridge", "values"])
@pytest.mark.parametrize("seconds", [0.0, 300.0], ids=["kept inside epochs", "kept after epochs"])
def test_a_fit_goes_on_from_its_checkpoint(kind, seconds, tmp_path, monkeypatch):
    """Killed again and again while all layers learn together: the bits of a fit that was left alone."""
    how = {**HOW, "batch_size": 2}
    X, y = VALUED if kind == "values" else LABELLED
    if kind == "values":
        make = partial(regressor, how=how, joint_epochs=3)
    else:
        make = partial(classifier, how={**how, "readout": kind}, joint_epochs=3)
    straight = make().fit(X, y)
    monkeypatch.setattr(checkpoints, "SECONDS", seconds)
    update, done, kills = together.Together._update, [], 0

    def deadly(self, *arguments):
        done.append(1)
        if len(done) % (3 if seconds == 0 else 6) == 0:
            raise Killed
        update(self, *arguments)

    monkeypatch.setattr(together.Together, "_update", deadly)
    again = make()
    while not hasattr(again, "history_"):
        try:
            again.fit(X, y, checkpoint=tmp_path)
        except Killed:
            kills += 1
    assert kills > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["layer-1", "layer-2", "together"]
    assert list(again.history_) == list(straight.history_)
    for one, other in zip(again.layers_, straight.layers_, strict=True):
        np.testing.assert_array_equal(one._U, other._U)
        np.testing.assert_array_equal(one.input_weights_, other.input_weights_)
        np.testing.assert_array_equal(one.recurrent_weights_.data, other.recurrent_weights_.data)


def test_a_checkpoint_of_another_stack_is_refused(tmp_path):
    X, y = LABELLED
    classifier().fit(X, y, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"step_size: None then, 0\.5 now"):
        classifier(step_size=0.5).fit(X, y, checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layers": [5]}, r"layers=\[5\]; expected a list of two or more"),
        ({"layers": 5}, "layers=5; expected a list"),
        ({"layers": [5, "six"]}, r"layers\[1\] is 'six'; expected a number of hidden units or an ESNClassifier"),
        ({"layers": [5, ESNRegressor(4)]}, "expected a number of hidden units or an ESNClassifier"),
        ({"layers": [0, 5]}, "hidden_units=0"),
        ({"sees": "input"}, "sees='input'; expected one of 'output'"),
        ({"joint_epochs": -1}, "joint_epochs=-1; expected a whole number >= 0"),
        ({"layers": [5, ESNClassifier(5, feedback=True)]}, "feedback=True in layer 2; expected False in a stack"),
        ({"layers": [ESNClassifier(5, targets="last"), 5]}, "targets='last' in layer 1"),
        ({"layers": [ESNClassifier(5, blocks=2), 5]}, "blocks=2 in layer 1; expected None or 1"),
        ({"layers": [ESNClassifier(5, dtype="float64"), 5]}, "dtype=.*expected one for all"),
    ],
)
def test_settings_that_do_not_fit_are_named(changes, words):
    with pytest.raises(ValueError, match=words):
        StackedClassifier(**{"layers": [5, 5], **changes}).fit(*LABELLED)


def test_other_features_are_refused():
    X, y = LABELLED
    stack = classifier(joint_epochs=0).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but StackedClassifier is expecting 2"):
        stack.predict(np.ones((5, 3)))
    with pytest.raises(ValueError, match="validation: its y must be of the same kind"):
        classifier().fit(X, y, validation=(X[:2], [0, 1]))


@pytest.mark.parametrize("make", [lambda: classifier().fit(*LABELLED), lambda: regressor((5, 4, 3)).fit(*VALUED)])
def test_a_file_gives_the_same_stack_back(tmp_path, make):
    stack = make()
    stack.save(tmp_path / "stack.safetensors")
    back = load(tmp_path / "stack.safetensors")
    assert type(back) is type(stack)
    X = LABELLED[0]
    for a, b in zip(stack.predict(X), back.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert back.history_ == stack.history_
    assert back.get_params()["sees"] == stack.sees
    clone(back).fit(*(LABELLED if hasattr(stack, "classes_") else VALUED))


def test_a_file_with_other_parts_is_refused(tmp_path):
    path = tmp_path / "stack.safetensors"
    classifier(joint_epochs=0).fit(*LABELLED).save(path)
    tensors, facts = storage.read_tensors(path, storage.FORMAT)
    without = {k: v for k, v in tensors.items() if k != "0/passed_scale"}
    for odd, words in (
        ({**tensors, "2/W": np.ones((2, 2))}, "arrays of no layer: '2/W'"),
        ({**tensors, "0/1/W": np.ones((2, 2))}, "arrays that no echolearn-model file has: '1/W'"),
        (without, "the scale of layer 0"),
        ({**without, "0/passed_scale": np.ones(3)}, "the scale of layer 0"),
        ({**without, "0/passed_scale": np.zeros(2)}, "not a positive number"),
        ({**tensors, "history": np.ones((1, 1))}, "the history does not fit"),
    ):
        storage.write_tensors(path, odd, facts, storage.FORMAT)
        with pytest.raises(ModelFileError, match=words):
            load(path)
    for odd in ([], facts["layers"][:1], [facts, facts], "layers", [1, 2]):
        storage.write_tensors(path, tensors, {**facts, "layers": odd}, storage.FORMAT)
        with pytest.raises(ModelFileError, match=r"are not layers|is not one"):
            load(path)
    facts["settings"]["sees"] = "output+hidden"
    storage.write_tensors(path, tensors, facts, storage.FORMAT)
    with pytest.raises(ModelFileError, match="a layer takes 2 inputs; expected 10"):
        load(path)
