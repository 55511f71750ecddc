"""A fit that is cut off resumes from its last state, and ends in the same bits."""

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.exceptions import CheckpointError, CheckpointWarning, TrainingWarning
from echolearn.execution.threads import thread_count
from echolearn.modelfile import checkpoint as checkpoints
from echolearn.modelfile.checkpoint import CHECKPOINT, KEPT_STATES, Checkpoint
from echolearn.readout import solver
from echolearn.readout.large import sketch, trackers
from echolearn.training.objectives.ridge import RidgeObjective
from echolearn.training.optimizers import LearnedWeights
from reliability import forging
from toys import grouped

X, LABELS = toys.labels(sequences=8)
VALUES = toys.echoes(sequences=8)[1]

KINDS = {
    "adam": {},
    "held out": {"validation_fraction": 0.25},
    "fista": {"optimizer": "fista", "batch_size": None, "step_size": 0.01},
    "case 1": {"case": 1, "batch_size": None},
    "float64, renormalised": {"dtype": "float64", "renormalize": True, "clip": 1.0},
    "feedback": {"feedback": True},
    "case 1, mini-batches": {"case": 1},
}
LARGE = {
    "large": {"validation_fraction": 0.25},
    "large, case 1": {"case": 1},
    "large, full batch": {"batch_size": None, "validation_fraction": 0.25},
    "large, full batch, case 1": {"batch_size": None, "case": 1, "optimizer": "fista", "step_size": 0.01},
}
REFINED = {
    "refined": {"refine_epochs": 2, "epochs": 1, "validation_fraction": 0.25},
    "refined, ensemble": {"ensemble": 2, "refine_epochs": 1, "epochs": 2},
    "refined, large": {"refine_epochs": 1, "validation_fraction": 0.25},
}


def same(a, b):
    """Check every weight, and every row of history but its seconds."""
    np.testing.assert_array_equal(a.network_.readout.U, b.network_.readout.U)
    for name, value in b.network_.reservoir.weights().items():
        np.testing.assert_array_equal(a.network_.reservoir.weights()[name], value)
    for one, other in zip(a.history_, b.history_, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    assert getattr(a, "refinement_", None) == getattr(b, "refinement_", None)


class Cut(Exception):
    pass


def cut_after_every_state(make, X, y, folder, monkeypatch):
    """Return a fit that is cut off after each state that it keeps and resumed, and how often."""
    save = Checkpoint.save

    def save_and_stop(self, tensors, state):
        save(self, tensors, state)
        raise Cut

    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN_STATES", 0.0)
    monkeypatch.setattr(Checkpoint, "save", save_and_stop)
    for cuts in range(200):
        esn = make()
        try:
            return esn.fit(X, y, checkpoint=folder), cuts
        except Cut:
            assert len(list(folder.rglob("*.safetensors"))) <= KEPT_STATES * len(
                {p.parent for p in folder.rglob("*.saf*")}
            )
    raise AssertionError("the fit does not advance")


@pytest.mark.parametrize("kind", [*KINDS, *LARGE, *REFINED])
def test_cut_off_after_every_state_it_ends_in_the_same_bits(kind, tmp_path, monkeypatch):
    more = {**KINDS, **LARGE, **REFINED}[kind]
    estimator, y = (ESNClassifier, LABELS) if kind in REFINED else (ESNRegressor, VALUES)
    how = {**toys.FAST, "hidden_units": 12, "epochs": 2, "patience": None, **more}
    if "large" in kind:
        monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 0)
        monkeypatch.setattr(sketch, "SAMPLE_FRAMES", 40)
        monkeypatch.setattr(trackers, "BATCHES_PER_SKETCH", 2)
        how["batch_size"] = how["batch_size"] and 2  # several mini-batches per sketch
    straight = estimator(**grouped(how)).fit(X, y)
    resumed, cuts = cut_after_every_state(lambda: estimator(**grouped(how)), X, y, tmp_path, monkeypatch)
    same(resumed, straight)
    assert cuts > how["epochs"] + how.get("refine_epochs", 0)  # some inside epochs


@pytest.mark.parametrize("trouble", ["diverges in the third epoch", "explodes after the last"])
def test_cut_off_it_returns_to_the_same_safe_weights(trouble, tmp_path, monkeypatch):
    step = LearnedWeights.step

    def diverging(self, gradients, step_size):
        if self.optimizer.count == 5 and step_size > 0.3 * 0.01:  # the steps of a second trial are smaller
            raise FloatingPointError("too far")
        return step(self, gradients, step_size)

    if trouble == "explodes after the last":
        monkeypatch.setattr(RidgeObjective, "is_stable", lambda *_: False)
    else:
        monkeypatch.setattr(LearnedWeights, "step", diverging)
    how = {**toys.FAST, "hidden_units": 12, "epochs": 4}
    with pytest.warns(TrainingWarning, match=r"too far.*tried again|explode"):
        straight = ESNRegressor(**grouped(how)).fit(X, VALUES)
    with pytest.warns(TrainingWarning):
        resumed, _ = cut_after_every_state(lambda: ESNRegressor(**grouped(how)), X, VALUES, tmp_path, monkeypatch)
    same(resumed, straight)


@pytest.mark.parametrize("estimator", [ESNClassifier, ESNRegressor])
@pytest.mark.parametrize("kind", ["held out", "fista"])
def test_a_fit_interrupted_between_epochs_ends_in_the_same_bits(estimator, kind, tmp_path):
    y = LABELS if estimator is ESNClassifier else VALUES
    how = {**toys.FAST, "epochs": 6, "patience": None, **KINDS[kind]}
    straight = estimator(**grouped(how)).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        estimator(**grouped(how)).fit(X, y, checkpoint=tmp_path / "kept", callback=toys.interrupt_at(3))
    seen = []
    resumed = estimator(**grouped(how)).fit(
        X, y, checkpoint=tmp_path / "kept", callback=lambda r: seen.append(r["epoch"])
    )
    assert seen == [4, 5, 6]
    same(resumed, straight)
    assert len(list((tmp_path / "kept").glob("*.safetensors"))) == KEPT_STATES


def test_a_damaged_newest_state_falls_back_to_the_one_before(tmp_path):
    how = {**toys.FAST, "epochs": 5}
    straight = ESNRegressor(**grouped(how)).fit(X, VALUES)
    ESNRegressor(**grouped(how)).fit(X, VALUES, checkpoint=tmp_path, callback=lambda row: row["epoch"] == 3)
    newest = sorted(tmp_path.iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-10])
    seen = []
    with pytest.warns(CheckpointWarning, match=rf"{newest.name} is damaged"):
        resumed = ESNRegressor(**grouped(how)).fit(
            X, VALUES, checkpoint=tmp_path, callback=lambda r: seen.append(r["epoch"])
        )
    assert seen == [3, 4, 5]
    np.testing.assert_array_equal(resumed.network_.readout.U, straight.network_.readout.U)


def files_at_3(folder, **how):
    """Return the files of a fit that was stopped after its third epoch."""
    ESNRegressor(**grouped({**toys.FAST, **how})).fit(
        X, VALUES, checkpoint=folder, callback=lambda row: row["epoch"] == 3
    )
    return sorted(folder.iterdir())


@pytest.mark.parametrize("name", ["weights/W", "../W", "G"])
def test_arrays_that_this_fit_does_not_have_are_refused(name, tmp_path):
    """Even under a right checksum."""
    for file in files_at_3(tmp_path):
        tensors, facts = forging.taken_apart(file.read_bytes(), CHECKPOINT)
        file.write_bytes(forging.written(({**tensors, name: np.ones((7, 7))}, facts), CHECKPOINT))
    with pytest.raises(CheckpointError, match=r"cannot resume from .*has shape \(7, 7\).*start anew"):
        ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)


MIDWAY = {"before": np.random.default_rng(0).bit_generator.state, "done": 99, "error": 0.0, "n": 1.0}


@pytest.mark.parametrize(
    "changes",
    [
        {"rng": 3},
        {"best_error": "small"},
        {"optimiser": None},
        {"step_size": [1]},
        {"pending": [1]},
        {"pending": {"error": "small"}},
        {"midway": {"before": 3}},
        {"midway": MIDWAY},
    ],
)
def test_a_state_that_makes_no_sense_is_refused(changes, tmp_path):
    for file in files_at_3(tmp_path):
        tensors, facts = forging.taken_apart(file.read_bytes(), CHECKPOINT)
        facts["state"] |= changes
        file.write_bytes(forging.written((tensors, facts), CHECKPOINT))
    with pytest.raises(CheckpointError, match=r"cannot resume from .*another checkpoint folder to start anew"):
        ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)


def test_if_all_states_are_damaged_the_fit_starts_anew_and_saves_its_own(tmp_path):
    how = {**toys.FAST, "epochs": 4}
    straight = ESNRegressor(**grouped(how)).fit(X, VALUES, checkpoint=tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(b"")
    with pytest.warns(CheckpointWarning):
        ESNRegressor(**grouped(how)).fit(X, VALUES, checkpoint=tmp_path, callback=lambda row: row["epoch"] == 2)
    seen = []
    resumed = ESNRegressor(**grouped(how)).fit(
        X, VALUES, checkpoint=tmp_path, callback=lambda r: seen.append(r["epoch"])
    )
    assert seen == [3, 4]
    same(resumed, straight)


def test_unfinished_files_of_a_killed_fit_are_removed(tmp_path):
    (tmp_path / ".state-000000002.safetensors.abc.part").write_bytes(b"half")
    ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [f"state-00000000{k}.safetensors" for k in (2, 3)]


def test_a_generator_is_recognised_by_its_state(tmp_path):
    def fit(bits, drawn):
        rng = np.random.Generator(bits(5))
        rng.random(drawn)
        return ESNRegressor(random_state=rng, **grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path / bits.__name__)

    for bits in (np.random.PCG64, np.random.MT19937):
        same(fit(bits, 0), fit(bits, 0))
        with pytest.raises(CheckpointError, match="random_state"):
            fit(bits, 1)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"hidden_units": 16}, "hidden_units: 15 then, 16 now"),
        ({"random_state": 1}, "random_state: 0 then, 1 now"),
        ({"initial_state": np.full(15, 0.5)}, "initial_state: None then"),
        ({"batch_size": 3}, "batch_size: 4 then, 3 now"),
    ],
)
def test_other_settings_are_refused_with_their_differences(changes, named, tmp_path):
    ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=rf"by another fit \(.*{named}.*another checkpoint folder"):
        ESNRegressor(**grouped({**toys.FAST, **changes})).fit(X, VALUES, checkpoint=tmp_path)


def test_another_number_of_threads_is_refused_where_the_bits_depend_on_it(tmp_path, monkeypatch):
    monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 0)
    ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)
    now = thread_count()
    monkeypatch.setattr(solver, "thread_count", lambda: now + 1)
    with pytest.raises(CheckpointError, match=f"threads: {now} then, {now + 1} now"):
        ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)


def test_long_lists_of_numbers_are_compared_completely(tmp_path):
    """As text NumPy would leave out the middle of them."""
    ridges = np.geomspace(1e-8, 1, 2000)
    ESNRegressor(ridge=ridges, **grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)
    ridges[1000] *= 2
    with pytest.raises(CheckpointError, match="ridge"):
        ESNRegressor(ridge=ridges, **grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)


def test_other_data_are_refused(tmp_path):
    ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)
    other = [x.copy() for x in X]
    other[3][2, 1] += 1e-6
    with pytest.raises(CheckpointError, match="data: "):
        ESNRegressor(**grouped(toys.FAST)).fit(other, VALUES, checkpoint=tmp_path)


def test_verbose_may_differ_and_a_finished_fit_is_not_repeated(tmp_path, capsys):
    first = ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)
    seen = []
    again = ESNRegressor(verbose=1, **grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path, callback=seen.append)
    assert seen == []
    np.testing.assert_array_equal(again.network_.readout.U, first.network_.readout.U)


def test_without_a_seed_there_is_nothing_to_resume_from(tmp_path):
    with pytest.raises(ValueError, match=r"random_state=None.*Give a random_state"):
        ESNRegressor(random_state=None, **grouped(toys.FAST)).fit(X, VALUES, checkpoint=tmp_path)
