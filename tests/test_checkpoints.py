"""A fit that is cut off goes on after its last finished epoch, and ends in the same bits."""

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.checkpoints import FORMAT, KEPT, CheckpointError
from reliability import forging

X, LABELS = toys.labels(sequences=8)
VALUES = toys.echoes(sequences=8)[1]

KINDS = {
    "adam": {},
    "held out": {"validation_fraction": 0.25},
    "fista": {"optimizer": "fista", "batch_size": None, "step_size": 0.01},
    "case 1": {"case": 1, "batch_size": None},
    "float64, renormalised": {"dtype": "float64", "renormalize": True, "clip": 1.0},
    "feedback": {"feedback": True},
}


def press_at(epoch):
    def press(row):
        if row["epoch"] == epoch:
            raise KeyboardInterrupt

    return press


@pytest.mark.parametrize("estimator", [ESNClassifier, ESNRegressor])
@pytest.mark.parametrize("kind", KINDS)
def test_going_on_ends_in_the_same_bits(estimator, kind, tmp_path):
    y = LABELS if estimator is ESNClassifier else VALUES
    how = {**toys.FAST, "epochs": 6, "patience": None, **KINDS[kind]}
    straight = estimator(**how).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        estimator(**how).fit(X, y, checkpoint=tmp_path / "kept", callback=press_at(3))
    seen = []
    resumed = estimator(**how).fit(X, y, checkpoint=tmp_path / "kept", callback=lambda r: seen.append(r["epoch"]))
    assert seen == [4, 5, 6]
    np.testing.assert_array_equal(resumed._U, straight._U)
    np.testing.assert_array_equal(resumed.input_weights_, straight.input_weights_)
    np.testing.assert_array_equal(resumed.recurrent_weights_.data, straight.recurrent_weights_.data)
    np.testing.assert_array_equal(resumed.reservoir_.leak, straight.reservoir_.leak)
    for a, b in zip(resumed.history_, straight.history_, strict=True):
        assert {k: v for k, v in a.items() if k != "seconds"} == {k: v for k, v in b.items() if k != "seconds"}
    assert len(list((tmp_path / "kept").glob("*.safetensors"))) == KEPT


def test_a_damaged_newest_state_falls_back_to_the_one_before(tmp_path):
    how = {**toys.FAST, "epochs": 5}
    straight = ESNRegressor(**how).fit(X, VALUES)
    ESNRegressor(**how).fit(X, VALUES, checkpoint=tmp_path, callback=lambda row: row["epoch"] == 3)
    newest = sorted(tmp_path.iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-10])
    seen = []
    resumed = ESNRegressor(**how).fit(X, VALUES, checkpoint=tmp_path, callback=lambda r: seen.append(r["epoch"]))
    assert seen == [3, 4, 5]
    np.testing.assert_array_equal(resumed._U, straight._U)


def kept_at_3(folder, **how):
    """The files of a fit that was stopped after its third epoch."""
    ESNRegressor(**{**toys.FAST, **how}).fit(X, VALUES, checkpoint=folder, callback=lambda row: row["epoch"] == 3)
    return sorted(folder.iterdir())


@pytest.mark.parametrize("how", [{}, {"validation_fraction": 0.25}])
def test_checkpoints_of_version_1_go_on_to_the_same_bits(how, tmp_path):
    straight = ESNRegressor(**{**toys.FAST, **how}).fit(X, VALUES)
    for file in kept_at_3(tmp_path, **how):
        parts = forging.as_version_1(forging.taken_apart(file.read_bytes(), FORMAT))
        parts[1]["state"] = {k: float("inf") if v == {"float": "inf"} else v for k, v in parts[1]["state"].items()}
        file.write_bytes(forging.written(parts, FORMAT, version=1))
    resumed = ESNRegressor(**{**toys.FAST, **how}).fit(X, VALUES, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed._U, straight._U)
    assert len(resumed.history_) == len(straight.history_)


@pytest.mark.parametrize("name", ["weights/W", "../W", "G"])
def test_arrays_that_this_fit_does_not_have_are_refused(name, tmp_path):
    """Even under a right checksum."""
    for file in kept_at_3(tmp_path):
        tensors, facts = forging.taken_apart(file.read_bytes(), FORMAT)
        file.write_bytes(forging.written(({**tensors, name: np.ones((7, 7))}, facts), FORMAT))
    with pytest.raises(CheckpointError, match=r"cannot go on from .*has shape \(7, 7\).*start anew"):
        ESNRegressor(**toys.FAST).fit(X, VALUES, checkpoint=tmp_path)


@pytest.mark.parametrize("changes", [{"rng": 3}, {"best_error": "small"}, {"optimiser": None}, {"step_size": [1]}])
def test_a_state_that_makes_no_sense_is_refused(changes, tmp_path):
    for file in kept_at_3(tmp_path):
        tensors, facts = forging.taken_apart(file.read_bytes(), FORMAT)
        facts["state"] |= changes
        file.write_bytes(forging.written((tensors, facts), FORMAT))
    with pytest.raises(CheckpointError, match=r"cannot go on from .*another checkpoint folder to start anew"):
        ESNRegressor(**toys.FAST).fit(X, VALUES, checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"hidden_units": 16}, "hidden_units: 15 then, 16 now"),
        ({"random_state": 1}, "random_state: 0 then, 1 now"),
        ({"initial_state": np.full(15, 0.5)}, "initial_state: None then"),
    ],
)
def test_other_settings_are_refused_and_named(changes, named, tmp_path):
    ESNRegressor(**toys.FAST).fit(X, VALUES, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=rf"by another fit \(.*{named}.*another checkpoint folder"):
        ESNRegressor(**{**toys.FAST, **changes}).fit(X, VALUES, checkpoint=tmp_path)


def test_other_data_are_refused(tmp_path):
    ESNRegressor(**toys.FAST).fit(X, VALUES, checkpoint=tmp_path)
    other = [x.copy() for x in X]
    other[3][2, 1] += 1e-9
    with pytest.raises(CheckpointError, match="data: "):
        ESNRegressor(**toys.FAST).fit(other, VALUES, checkpoint=tmp_path)


def test_verbose_may_differ_and_a_finished_fit_is_not_repeated(tmp_path, capsys):
    first = ESNRegressor(**toys.FAST).fit(X, VALUES, checkpoint=tmp_path)
    seen = []
    again = ESNRegressor(**toys.FAST, verbose=1).fit(X, VALUES, checkpoint=tmp_path, callback=seen.append)
    assert seen == []
    np.testing.assert_array_equal(again._U, first._U)


def test_without_a_seed_there_is_nothing_to_go_on_from(tmp_path):
    with pytest.raises(ValueError, match=r"random_state=None.*Give a random_state"):
        ESNRegressor(**toys.FAST, random_state=None).fit(X, VALUES, checkpoint=tmp_path)
