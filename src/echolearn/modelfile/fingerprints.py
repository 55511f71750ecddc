"""Hashes of arrays, by which a checkpoint recognises the weights that it belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from echolearn.validation import Array


def matrix_fingerprint(matrix: ArrayLike | sparse.csr_array) -> str:
    """Return a hash of a dense or sparse matrix."""
    entries = sparse.csr_array(matrix, dtype=np.float64)
    entries.sum_duplicates()
    digest = hashlib.blake2b(repr(entries.shape).encode(), digest_size=16)
    for part in (entries.indptr, entries.indices):
        digest.update(part.astype(np.int64).data)
    digest.update(entries.data.data)
    return digest.hexdigest()


def weights_fingerprint(weights: Mapping[str, Array], use: object) -> str:
    """Return a hash of weights by name, and of `use`, an object whose repr says how they are used."""
    digest = hashlib.blake2b(repr(use).encode(), digest_size=16)
    for name, value in sorted(weights.items()):
        digest.update(name.encode() + np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()
