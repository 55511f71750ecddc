"""Stacked estimators: answers, learning, checkpoints, files, and settings that are refused."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import toys
from echolearn import ESNClassifier, ESNRegressor, StackedClassifier, StackedRegressor, load
from echolearn.exceptions import ModelFileError
from echolearn.modelfile import checkpoint
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.schema import FORMAT
from echolearn.modelfile.writer import write_tensors
from echolearn.states import harvest
from echolearn.training.objectives.joint import StackedObjective
from stacks import SEES
from toys import grouped

HOW = {"connections": 4, "epochs": 3, "batch_size": 4}
LABELLED = toys.labels(sequences=8)
VALUED = toys.echoes(sequences=8)


def classifier(units=(8, 6), how=HOW, **changes):
    return StackedClassifier([ESNClassifier(n, **grouped(how)) for n in units], **{"joint_epochs": 2, **changes})


def regressor(units=(8, 6), how=HOW, **changes):
    return StackedRegressor([ESNRegressor(n, **grouped(how)) for n in units], **{"joint_epochs": 2, **changes})


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


def test_the_layer_above_sees_what_the_one_below_answers():
    X, y = LABELLED
    stack = classifier((8, 6, 5), sees="output+hidden").fit(X, y)
    assert [layer.n_features_in_ for layer in stack.layers_] == [2, 2 + 8, 2 + 6]
    inputs = X
    for layer, scale in zip(stack.layers_, stack.scales_, strict=False):
        seen = [(x - layer.input_mean_) / layer.input_scale_ for x in inputs]
        beside = zip(layer.predict_proba(inputs), harvest(layer.reservoir_, seen), strict=True)
        inputs = [np.hstack([P * scale, H]) for P, H in beside]
        assert np.vstack(inputs)[:, :2].std(axis=0) == pytest.approx([1, 1], rel=0.3)
    for by_hand, P in zip(stack.layers_[-1].predict_proba(inputs), stack.predict_proba(X), strict=True):
        np.testing.assert_allclose(by_hand, P, atol=1e-5)


def test_one_target_per_series_is_refused():
    X, up = toys.rising()
    found = r"y has one target for each of the 40 sequences of X; Stacked\w+ learns one target per step."
    with pytest.raises(ValueError, match=rf"{found} Use SeriesClassifier for one target per series"):
        classifier().fit(X, up)
    with pytest.raises(ValueError, match=rf"{found} Use SeriesRegressor for one target per series"):
        regressor().fit(X, [x.mean() for x in X])


def test_joint_learning_lowers_the_error():
    """On the data it learns from, all layers at once must come further than each for itself."""
    X, Y = VALUED
    how = {**HOW, "batch_size": None, "epochs": 10, "ridge": 1e-2, "dtype": "float64"}
    alone, both = (regressor(how=how, joint_epochs=n, validation_fraction=0.0).fit(X, Y) for n in (0, 20))
    assert both.score(X, Y) > alone.score(X, Y)
    errors = [row["error"] for row in both.history_]
    assert errors[-1] < errors[0]


def test_only_the_weights_chosen_are_learned():
    X, y = LABELLED
    stack = StackedClassifier([ESNClassifier(8, learn="none"), ESNClassifier(6, **grouped(HOW))], joint_epochs=2)
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


def test_validation_decides_and_progress_is_reported(capsys):
    X, y = LABELLED
    rows = []
    stack = classifier(verbose=1).fit(X[2:], y[2:], validation=(X[:2], y[:2]), callback=rows.append)
    assert [row.get("layer") for row in rows] == [1] * 3 + [2] * 3 + [None] * 2
    assert [row["epoch"] for row in stack.history_] == [1, 2]
    assert "valid_error" in stack.history_[0]
    shown = capsys.readouterr().err
    assert "layer 1 of 2: 8 units" in shown
    assert "all 2 layers jointly" in shown


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
    toys.set_readout(stack.layers_[0], stack.layers_[0].network_.readout.U * 1e300)
    with pytest.raises(ValueError, match="outputs of layer 1 are not finite"):
        stack.predict(X)


class Killed(Exception):
    pass


@pytest.mark.parametrize("kind", ["softmax", "ridge", "values"])
@pytest.mark.parametrize("seconds", [0.0, 300.0], ids=["kept inside epochs", "kept after epochs"])
def test_a_fit_resumes_from_its_checkpoint(kind, seconds, tmp_path, monkeypatch):
    """Killed again and again while all layers learn jointly: the bits of a fit that was left alone."""
    how = {**HOW, "batch_size": 2}
    X, y = VALUED if kind == "values" else LABELLED
    if kind == "values":
        make = partial(regressor, how=how, joint_epochs=3)
    else:
        make = partial(classifier, how={**how, "readout": kind}, joint_epochs=3)
    straight = make().fit(X, y)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN_STATES", seconds)
    step, done, kills = StackedObjective.step, [], 0

    def deadly(self, *arguments):
        done.append(1)
        if len(done) % (3 if seconds == 0 else 6) == 0:
            raise Killed
        return step(self, *arguments)

    monkeypatch.setattr(StackedObjective, "step", deadly)
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
        np.testing.assert_array_equal(one.network_.readout.U, other.network_.readout.U)
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
        ({"layers": [ESNClassifier(5, learning={"targets": "last"}), 5]}, "targets='last' in layer 1"),
        ({"layers": [ESNClassifier(5, ensemble=2), 5]}, "ensemble=2 in layer 1; expected 1"),
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
    tensors, facts = read_tensors(path, FORMAT)
    without = {k: v for k, v in tensors.items() if k != "0/passed_scale"}
    for odd, words in (
        ({**tensors, "2/W": np.ones((2, 2))}, "arrays of no layer: '2/W'"),
        ({**tensors, "0/1/W": np.ones((2, 2))}, "arrays that no echolearn-model file has: '1/W'"),
        (without, "the scale of layer 0"),
        ({**without, "0/passed_scale": np.ones(3)}, "the scale of layer 0"),
        ({**without, "0/passed_scale": np.zeros(2)}, "not a positive number"),
        ({**tensors, "history": np.ones((1, 1))}, "the history does not fit"),
    ):
        write_tensors(path, odd, facts, FORMAT)
        with pytest.raises(ModelFileError, match=words):
            load(path)
    for odd in ([], facts["layers"][:1], [facts, facts], "layers", [1, 2]):
        write_tensors(path, tensors, {**facts, "layers": odd}, FORMAT)
        with pytest.raises(ModelFileError, match=r"are not layers|is not one"):
            load(path)
    facts["settings"]["sees"] = "output+hidden"
    write_tensors(path, tensors, facts, FORMAT)
    with pytest.raises(ModelFileError, match="a layer takes 2 inputs; expected 10"):
        load(path)


def test_scikit_learn_is_told_that_several_outputs_are_possible():
    assert StackedRegressor([ESNRegressor(5)]).__sklearn_tags__().target_tags.multi_output
