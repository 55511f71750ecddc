"""The checkpoint folder: states are loaded as they were saved; those damaged or of another fit are refused."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from echolearn.exceptions import CheckpointError, CheckpointWarning
from echolearn.modelfile import checkpoint as module
from echolearn.modelfile.checkpoint import Checkpoint, matrix_fingerprint, weights_fingerprint

ROWS = [{"epoch": 1, "error": 0.5}, {"epoch": 2, "error": 0.25, "valid_error": 0.75}]


def save(folder, **about):
    Checkpoint(folder, about).save({"G": np.eye(2)}, {"history": ROWS, "n": np.int64(3)})


def test_a_state_is_loaded_as_it_was_saved(tmp_path):
    save(tmp_path)
    tensors, state = Checkpoint(tmp_path, {}).load({"G": (2, 2)})
    np.testing.assert_array_equal(tensors["G"], np.eye(2))
    assert state == {"history": ROWS, "n": 3}
    assert Checkpoint(tmp_path / "other", {}).load({}) is None


def test_the_newest_two_states_are_kept(tmp_path):
    checkpoint = Checkpoint(tmp_path, {})
    for number in range(4):
        checkpoint.save({"G": np.full((1, 1), number)}, {"history": []})
    assert sorted(os.listdir(tmp_path)) == ["state-000000003.safetensors", "state-000000004.safetensors"]
    resumed = Checkpoint(tmp_path, {})
    assert resumed.load({"G": (1, 1)})[0]["G"] == 3
    resumed.save({}, {"history": []})
    assert sorted(os.listdir(tmp_path)) == ["state-000000004.safetensors", "state-000000005.safetensors"]


def test_a_damaged_state_is_skipped_with_a_warning_that_names_this_file(tmp_path):
    checkpoint = Checkpoint(tmp_path, {})
    for number in range(2):
        checkpoint.save({"G": np.full((1, 1), number)}, {"history": []})
    (tmp_path / "state-000000002.safetensors").write_bytes(b"damaged")
    with pytest.warns(
        CheckpointWarning, match=r"state-000000002.*is damaged.*resumes from the state before it"
    ) as seen:
        assert Checkpoint(tmp_path, {}).load({"G": (1, 1)})[0]["G"] == 0
    assert seen[0].filename == __file__


@pytest.mark.parametrize("allowed", [{}, {"G": (2, 3)}, {"G": (None,)}, {"G": (2, 2, 2)}])
def test_arrays_that_are_not_allowed_are_refused(allowed, tmp_path):
    save(tmp_path)
    with pytest.raises(CheckpointError, match=r"cannot resume from .*G has shape \(2, 2\).*start anew"):
        Checkpoint(tmp_path, {}).load(allowed)


def test_another_fit_is_refused_with_the_differences(tmp_path):
    save(tmp_path, seed=1, units=5)
    with pytest.raises(CheckpointError, match=r"by another fit \(seed: 1 then, 2 now\)\. Use the same data"):
        Checkpoint(tmp_path, {"seed": 2, "units": 5}).load({})


def test_errors_while_a_state_is_restored_become_checkpoint_errors(tmp_path):
    with pytest.raises(CheckpointError, match=r"cannot resume from .*KeyError"), Checkpoint(tmp_path, {}).restoring():
        raise KeyError("midway")


def test_another_stage_has_its_own_folder(tmp_path):
    stage = Checkpoint(tmp_path, {"seed": 1}).for_stage("readout")
    assert (stage.folder, stage.about) == (tmp_path / "readout", {"seed": 1})
    assert stage.folder.is_dir()


def test_a_state_is_due_after_some_minutes(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path, {})
    assert not checkpoint.due()
    monkeypatch.setattr(module, "SECONDS_BETWEEN_STATES", 0.0)
    assert checkpoint.due()


def test_arrays_keep_their_order_in_memory(tmp_path):
    arrays = {"C": np.arange(6.0).reshape(2, 3), "F": np.asfortranarray(np.arange(6.0).reshape(2, 3))}
    Checkpoint(tmp_path, {}).save(arrays, {"history": []})
    back, _ = Checkpoint(tmp_path, {}).load({"C": (2, 3), "F": (2, None)})
    for name, value in arrays.items():
        np.testing.assert_array_equal(back[name], value)
        assert back[name].strides == value.strides


def test_threads_may_save_states_at_once(tmp_path):
    """Subnetworks of an ensemble do. New files have the permissions that the process gives them."""
    (tmp_path / "usual").touch()

    def save(number):
        checkpoint = Checkpoint(tmp_path / str(number), {})
        for _ in range(50):
            checkpoint.save({"G": np.ones(3)}, {"history": []})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(4)))
    (tmp_path / "after").touch()
    assert len({path.stat().st_mode for path in tmp_path.rglob("*") if path.is_file()}) == 1


# Fingerprints.


MATRIX = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 0.0]])


def test_a_dense_and_a_sparse_matrix_have_the_same_fingerprint():
    expected = matrix_fingerprint(MATRIX)
    for form in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
        assert matrix_fingerprint(form(MATRIX)) == expected
    assert matrix_fingerprint(MATRIX.tolist()) == matrix_fingerprint(np.asfortranarray(MATRIX)) == expected


def test_another_matrix_has_another_fingerprint():
    others = [
        MATRIX.T,
        np.vstack([MATRIX, np.zeros(3)]),
        MATRIX + np.finfo(float).eps * MATRIX,
        MATRIX[:, ::-1],
        -MATRIX,
    ]
    assert len({matrix_fingerprint(matrix) for matrix in (MATRIX, *others)}) == 6


def test_weights_are_recognised_by_name_value_and_use():
    weights = {"W": MATRIX, "bias": np.ones(3)}
    same = {"bias": np.ones(3), "W": np.asfortranarray(MATRIX)}
    assert weights_fingerprint(weights, (1, "a")) == weights_fingerprint(same, (1, "a"))
    different = [
        weights_fingerprint(weights, (2, "a")),
        weights_fingerprint({"W": MATRIX}, (1, "a")),
        weights_fingerprint({"W": MATRIX, "leak": np.ones(3)}, (1, "a")),
        weights_fingerprint({"W": MATRIX, "bias": np.array([1.0, 1.0, 1.0 + 1e-15])}, (1, "a")),
    ]
    assert len({*different, weights_fingerprint(weights, (1, "a"))}) == 5
