"""The Cholesky factor of a large matrix, computed by halves on our own threads.

LAPACK alone uses one core, and BLAS's own threads wait for each other by spinning: where anyone else works on the
machine they have been seen to take twenty times as long.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.linalg import LinAlgError, blas, lapack

from echolearn._typing import Array
from echolearn.execution.threads import map_in_order

SMALL = 512  # rows that LAPACK factors alone
TILE = 1024  # rows and columns per task, at most


def equal_slices(M: int, most: int) -> list[slice]:
    """Return 0 ... M in as few equal slices as have at most `most` members."""
    edges = np.linspace(0, M, -(-M // most) + 1).astype(int)
    return [slice(*ends) for ends in itertools.pairwise(edges)]


def factor(G: Array) -> None:
    """Factor G = L L' (M, M) in place: L is left in the lower half, anything in the upper one.

    [A .; B C]: A = L L', B <- B L'^-1, C <- C - B B' and its factor. Each task writes rows or a tile of its own, so the
    result does not depend on the number of threads.
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
    """Return (L L')^-1 Q, some columns of Q per task. L: as `factor` leaves it."""
    columns = np.array_split(Q, min(4, Q.shape[1]), axis=1)
    # seen in LAPACK's order L is its transpose, an upper factor: no copy is made
    return np.hstack(list(map_in_order(lambda B: lapack.dpotrs(L.T, B, lower=0)[0], columns)))
