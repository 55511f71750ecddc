"""Fingerprints: equal for equal matrices and weights, different for a change anywhere."""

import numpy as np
from scipy import sparse

from echolearn.modelfile.fingerprints import matrix_fingerprint, weights_fingerprint

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
