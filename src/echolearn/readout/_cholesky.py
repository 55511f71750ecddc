"""Cholesky's factor of a large matrix, by halves, on our own threads.

LAPACK alone uses one core, and BLAS's own threads wait for each other by spinning: where anyone else works on the
machine they have been seen to take twenty times as long.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, blas, lapack

from echolearn.execution.threads import each

Array = NDArray[Any]

SMALL = 512  # rows that LAPACK factors alone
TILE = 1024  # at most so many rows and columns a task


def parts(M: int, most: int) -> list[slice]:
    """0 ... M in as few equal parts as have at most `most` members."""
    edges = np.linspace(0, M, -(-M // most) + 1).astype(int)
    return [slice(*ends) for ends in itertools.pairwise(edges)]


def factor(G: Array) -> None:
    """G = L L' (M, M) in place: L is left in the lower half, anything in the upper one.

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

    def take_off(tile: tuple[slice, slice]) -> None:
        R, S = tile
        C[R, S] -= B[R] @ B[S].T

    for _ in each(divide, parts(len(B), SMALL)):
        pass
    bands = parts(len(C), TILE)
    for _ in each(take_off, [(R, S) for i, R in enumerate(bands) for S in bands[: i + 1]]):
        pass
    factor(C)


def solve(L: Array, Q: Array) -> Array:
    """(L L')^-1 Q, some columns of Q a task. L: as `factor` leaves it."""
    columns = np.array_split(Q, min(4, Q.shape[1]), axis=1)
    # seen in LAPACK's order L is its transpose, an upper factor: no copy is made
    return np.hstack(list(each(lambda B: lapack.dpotrs(L.T, B, lower=0)[0], columns)))
