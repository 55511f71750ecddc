"""Refining: its derivatives against finite differences of the cross entropy, and what it promises."""

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier
from echolearn.readout import softmax
from echolearn.readout.collect import Task
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.training.objectives import cross_entropy as refining

X, LABELS = toys.labels(sequences=8)
DATA = Dataset(
    X, [(y == "low").astype(int) + 2 * (np.arange(len(y)) % 5 == 0) for y in LABELS], 4, True, np.dtype(float)
)
RESERVOIR = Reservoir.random(2, 7, connections=3, input_scaling=0.5, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)


@pytest.mark.parametrize(
    "task", [Task(), Task(washout=2, direct=False), Task(pooling="mean"), Task(pooling=3)], ids=str
)
def test_derivatives_are_those_of_the_cross_entropy(task):
    y = DATA.y if task.pooling is None else [labels[-1] for labels in DATA.y]
    data = Dataset(X, y, 4, task.pooling is None, np.dtype(float))
    rng = np.random.default_rng(0)
    parts = task.pooling if isinstance(task.pooling, int) else 1
    V = rng.normal(size=(parts * (7 + 2 * task.direct) + 1, 4))
    met = refining.share(RESERVOIR, task, V, data.batch(range(len(X))))

    def loss(V=V, **weights):
        return met.n * softmax.cross_entropy(RESERVOIR.with_weights(**weights), data, task, V)

    assert met.loss == pytest.approx(loss(), rel=1e-12)
    for name, value in {**RESERVOIR.weights(), "V": V}.items():
        derivative = met.V if name == "V" else getattr(met.gradients, name)
        way, h = rng.normal(size=value.shape), 1e-6
        slope = (loss(**{name: value + h * way}) - loss(**{name: value - h * way})) / (2 * h)
        assert np.vdot(derivative, way) == pytest.approx(slope, rel=1e-6), name


HOW = {**toys.FAST, "validation_fraction": 0.25, "refine_epochs": 4}


def test_the_best_epoch_counts_and_the_start_is_one():
    esn = ESNClassifier(**HOW).fit(X, LABELS)
    assert [row["epoch"] for row in esn.refinement_] == [1, 2, 3, 4]
    wild = ESNClassifier(**HOW, step_size=50.0).fit(X, LABELS)
    assert np.isfinite(wild._U).all()
    assert np.isfinite(wild.input_weights_).all()


def test_refining_lowers_the_training_cross_entropy():
    def entropy(epochs):
        how = {**HOW, "validation_fraction": 0.0, "refine_epochs": epochs, "hidden_units": 20}
        P = ESNClassifier(**how).fit(X, LABELS).predict_proba(X)
        right = np.concatenate([p[np.arange(len(p)), (y == "low").astype(int)] for p, y in zip(P, LABELS, strict=True)])
        return -np.log(right).mean()

    assert entropy(8) < entropy(0)


@pytest.mark.parametrize("without", [{"learn": "none"}, {"readout": "ridge"}, {"refine_epochs": 0}, {"epochs": 0}])
def test_nothing_is_refined_where_nothing_is_to_be(without):
    assert ESNClassifier(**{**HOW, **without}).fit(X, LABELS).refinement_ == []


def test_one_label_a_sequence_is_not_refined():
    assert ESNClassifier(**HOW).fit(*toys.rising()).refinement_ == []


def test_an_interrupted_refinement_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    straight = ESNClassifier(**HOW).fit(X, LABELS)
    once = refining.Refiner.epoch

    def until_three(refiner, number):
        if number == 3:
            raise KeyboardInterrupt
        return once(refiner, number)

    monkeypatch.setattr(refining.Refiner, "epoch", until_three)
    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**HOW).fit(X, LABELS, checkpoint=tmp_path)
    monkeypatch.undo()
    resumed = ESNClassifier(**HOW).fit(X, LABELS, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed._U, straight._U)
    np.testing.assert_array_equal(resumed.recurrent_weights_.data, straight.recurrent_weights_.data)
    assert resumed.refinement_ == straight.refinement_
