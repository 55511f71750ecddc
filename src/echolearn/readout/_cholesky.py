"""The Cholesky factor of a large matrix, computed by halves on our own threads.

LAPACK by itself uses one core. The threads of BLAS would use more, but they wait for each other by spinning: beside
other programs on the same machine they have been seen to take twenty times as long.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.linalg import LinAlgError, blas, lapack

from echolearn.execution.threads import map_in_order
from echolearn.validation import Array

SMALL = 512  # at most so many rows are factored by LAPACK at once
TILE = 1024  # at most so many rows and columns are one task


def equal_slices(M: int, most: int) -> list[slice]:
    """Return slices of about equal length that cover range(M): as few as possible with at most `most` members each."""
    edges = np.linspace(0, M, -(-M // most) + 1).astype(int)
    return [slice(*ends) for ends in itertools.pairwise(edges)]


def factor(G: Array) -> None:
    """Factor G = L L' (M, M) in place: the lower half becomes L, the upper half is undefined.

    With G = [A .; B C]: A = L L', then B <- B L'^-1, then C <- C - B B', which is factored in turn. Each task writes
    its own rows or its own tile, so the result does not depend on the number of threads.
    """
    if len(G) <= SMALL:
        L, failed = lapack.dpotrf(G, lower=1)
        if failed:
            raise LinAlgError("the matrix is not positive definite")
        G[:] = L
        return
    half = len(G) // 2
    A, B, C = G[:half, :half], G[half:, :half], G[half:, half:]
    factor(A)
    L = np.asfortranarray(A)

    def divide(R: slice) -> None:
        B[R] = blas.dtrsm(1.0, L, B[R].T, lower=1).T

    def subtract(tile: tuple[slice, slice]) -> None:
        R, S = tile
        C[R, S] -= B[R] @ B[S].T

    for _ in map_in_order(divide, equal_slices(len(B), SMALL)):
        pass
    bands = equal_slices(len(C), TILE)
    for _ in map_in_order(subtract, [(R, S) for i, R in enumerate(bands) for S in bands[: i + 1]]):
        pass
    factor(C)


def solve(L: Array, Q: Array) -> Array:
    """Return (L L')^-1 Q (M, n_out) for L as `factor` leaves it; each task solves for some columns of Q."""
    columns = np.array_split(Q, min(4, Q.shape[1]), axis=1)
    # L.T is in the order that LAPACK expects, as an upper factor: no copy is made
    return np.hstack(list(map_in_order(lambda B: lapack.dpotrs(L.T, B, lower=0)[0], columns)))
