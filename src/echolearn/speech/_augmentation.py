"""Augmentation: utterances as if spoken with a longer or shorter vocal tract, and with stretches of time masked.

A shorter vocal tract multiplies all resonances by about the same factor. With S(ω) the log spectrum over the mel axis,
ω = 0 at the lowest and π at the highest frequency of the filter bank, a warp by the factor a is

    S_a(ω) = S(g(ω)),    g: the map f -> f / a on the mel axis,

so that a peak at the frequency f moves to a f. Cepstra are cosine coefficients, S(ω) = c_0 + Σ_k c_k cos(k ω), and
those of the warped spectrum are linear in them:

    c'_j = Σ_k A_jk c_k,    A_jk = 2/π ∫ cos(k g(ω)) cos(j ω) dω    (1/π for j = 0).

Differences over time and the warp can be exchanged. Normalisation and the warp can not: of normalised features, the
usual deviations of cepstra take the place of those of the utterance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echolearn.speech._audio import RATE_HZ
from echolearn.speech._features import (
    CEPSTRA,
    CONTEXT_FRAMES,
    LIFTER,
    LOWEST_HZ,
    Frames,
    normalised,
    with_context,
    with_differences,
)
from echolearn.validation import Array

Augment = Callable[[Array, np.random.Generator], Array]  # what `augment=` of deep networks takes

_PROPORTIONAL_SHARE = 0.85  # of the band, up to which frequencies are multiplied; above, a line leads to the upper end
_INTEGRATION_POINTS = 2048  # of the integrals over the mel axis
FACTOR_STEPS = 201  # factors between the smallest and the largest for which a matrix is computed, once


def mel(frequency: Array | float) -> Array:
    """Return frequencies in Hz on the mel scale."""
    return np.asarray(1127.0 * np.log1p(np.asarray(frequency) / 700.0))


def warped_frequency(frequency: Array | float, factor: float, high: float = RATE_HZ / 2) -> Array:
    """Return the frequencies to which a warp moves the given ones; 1 / factor is the exact inverse. Where a frequency
    or its image exceeds 85 % of the band up to `high`, the map is a straight line to the end."""
    edge = _PROPORTIONAL_SHARE * high
    knot = edge / factor if factor > 1 else edge
    return np.asarray(np.interp(frequency, [0.0, knot, high], [0.0, factor * knot, high]))


def warp_matrix(
    factor: float, *, cepstra: int = CEPSTRA, low: float = LOWEST_HZ, high: float = RATE_HZ / 2, lifter: float = LIFTER
) -> NDArray[np.float64]:
    """Return the matrix by which cepstra are multiplied to warp their frequency axis.

    Parameters
    ----------
    factor : float
        The factor by which resonances move: 1.1 moves a peak at 1000 Hz to 1100 Hz. Use values between 0.8 and 1.25 for
        human voices.
    cepstra : int, default 13
        Coefficients per frame, the first of which is an energy or c_0.
    low, high : float, default 20 and 8000
        The ends of the mel filter bank in Hz, with which the cepstra were computed.
    lifter : float, default 22
        The Q of the liftering, in which cepstra are multiplied by ``1 + Q/2 sin(pi k / Q)``, as in `mfcc`. Use 0 for
        cepstra without liftering.

    Returns
    -------
    array of shape (cepstra, cepstra)
        The matrix A; the cepstra ``C`` (frames are rows) of an utterance become ``C @ A.T``. The first coefficient does
        not change, because a warp does not change the energy of a frame, and has no influence on the others.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.allclose(warp_matrix(1.0), np.eye(13)))
    True
    """
    if not 0 < factor < np.inf:
        raise ValueError(f"factor is {factor}, expected a positive number such as 0.9 or 1.1")
    if not 0 <= low < high:
        raise ValueError(f"the band from {low} to {high} Hz is empty; expected 0 <= low < high")
    omega = np.pi * (np.arange(_INTEGRATION_POINTS) + 0.5) / _INTEGRATION_POINTS
    bottom, top = mel(low), mel(high)
    frequency = 700.0 * np.expm1((bottom + omega / np.pi * (top - bottom)) / 1127.0)
    g = np.pi * (mel(warped_frequency(frequency, 1 / factor, high)) - bottom) / (top - bottom)
    k = np.arange(cepstra)
    A = 2 / _INTEGRATION_POINTS * np.cos(np.outer(k, omega)) @ np.cos(np.outer(np.maximum(g, 0.0), k))
    A[0], A[:, 0] = 0.0, 0.0
    A[0, 0] = 1.0
    scale = 1 + lifter / 2 * np.sin(np.pi * k / lifter) if lifter else np.ones(cepstra)
    return np.asarray(A * scale[:, None] / scale)


def vocal_tract_warps(
    spread: float,
    deviations: ArrayLike,
    *,
    context: int = CONTEXT_FRAMES,
    per_utterance: bool = True,
    low: float = LOWEST_HZ,
    high: float = RATE_HZ / 2,
    lifter: float = LIFTER,
) -> Augment:
    """Return a function for `augment=` that warps normalised features as if spoken with another vocal tract.

    Parameters
    ----------
    spread : float
        The factor is drawn evenly, in logarithm, between ``1 / (1 + spread)`` and ``1 + spread``. 0.15 is slightly more
        than the differences between adult speakers.
    deviations : array of shape (39,)
        The usual standard deviation of each cepstrum and difference, before it was normalised: a warp mixes cepstra in
        their own units. Within utterances, `usual_deviations` returns them.
    context : int, default=3
        The number of frames that stand side by side in a row, as in `with_context`.
    per_utterance : bool, default=True
        Whether features are normalised per utterance, and so are again after the warp. False: by these deviations, of
        the training part.
    low, high, lifter : float
        As in `warp_matrix`.

    Returns
    -------
    callable
        From normalised features (n_frames, 39 context) and a generator to warped ones.

    Examples
    --------
    >>> import numpy as np
    >>> warp = vocal_tract_warps(0.1, np.ones(39))
    >>> warp(np.random.default_rng(0).standard_normal((30, 117)), np.random.default_rng(1)).shape
    (30, 117)
    """
    if not 0 <= spread < np.inf:
        raise ValueError(f"spread is {spread}, expected 0 or more, such as 0.1")
    units = np.asarray(deviations, np.float64).reshape(3, -1)
    factors = (1 + spread) ** np.linspace(-1, 1, FACTOR_STEPS)
    warps = [warp_matrix(f, cepstra=units.shape[1], low=low, high=high, lifter=lifter).T for f in factors]
    scale = 1.0 if per_utterance else units[:, None, :]
    matrices = [(units[:, :, None] * warp / scale).astype(np.float32) for warp in warps]  # (3, 13, 13) each

    def warp(x: Array, rng: np.random.Generator) -> Array:
        middle = np.hsplit(np.asarray(x, np.float32), context)[context // 2]
        blocks = middle.reshape(len(x), 3, -1).transpose(1, 0, 2) @ matrices[int(rng.integers(FACTOR_STEPS))]
        rows = blocks.transpose(1, 0, 2).reshape(len(x), -1)
        return with_context(normalised(rows) if per_utterance else rows, context)

    return warp


def speaker_maps(spread: float = 0.2, *, context: int = CONTEXT_FRAMES) -> Augment:
    """Return a function for `augment=` that multiplies the cepstra of an utterance by a random matrix near 1.

    Differences between speakers are largely linear in cepstra; a warp is one of them. The matrix is the same for the
    cepstra and their differences in all frames.

    Parameters
    ----------
    spread : float, default=0.2
        The matrix is ``1 + spread G / sqrt(n)`` for n cepstra, and the entries of G are standard normal.
    context : int, default=3
        The number of frames that stand side by side in a row, as in `with_context`.

    Returns
    -------
    callable
        From features (n_frames, 39 context), normalised per utterance, and a generator, to mapped ones.

    Examples
    --------
    >>> import numpy as np
    >>> other = speaker_maps(0.2)
    >>> other(np.random.default_rng(0).standard_normal((30, 117)), np.random.default_rng(1)).shape
    (30, 117)
    """
    if not 0 <= spread < np.inf:
        raise ValueError(f"spread is {spread}, expected 0 or more, such as 0.2")

    def change(x: Array, rng: np.random.Generator) -> Array:
        middle = np.hsplit(np.asarray(x, np.float32), context)[context // 2]
        blocks = middle.reshape(len(x), 3, -1)
        n = blocks.shape[2]
        matrix = np.eye(n) + spread * rng.standard_normal((n, n)) / np.sqrt(n)
        return with_context(normalised((blocks @ matrix.astype(np.float32)).reshape(len(x), -1)), context)

    return change


def usual_deviations(cepstra: Sequence[Frames]) -> Array:
    """Return the standard deviation of cepstra and their differences within an utterance, for `vocal_tract_warps`.

    Parameters
    ----------
    cepstra : sequence of array of shape (n_frames, 13)
        Cepstra of some utterances, before differences and normalisation.

    Returns
    -------
    array of shape (39,)
        The root of the mean variance.

    Examples
    --------
    >>> import numpy as np
    >>> usual_deviations([np.random.default_rng(0).standard_normal((50, 13))]).shape
    (39,)
    """
    return np.asarray(
        np.sqrt(np.mean([with_differences(np.asarray(c, np.float32)).var(axis=0) for c in cepstra], axis=0))
    )


def time_masks(count: int = 2, steps: int = 15) -> Augment:
    """Return a function for `augment=` that sets stretches of time to 0, the mean of normalised features.

    Parameters
    ----------
    count : int, default=2
        The number of stretches in each sequence.
    steps : int, default=15
        The length of a stretch is drawn evenly between 0 and this number of steps.

    Returns
    -------
    callable
        From a sequence (n_steps, n_features) and a generator to the masked sequence.

    Examples
    --------
    >>> import numpy as np
    >>> masked = time_masks(1, 5)(np.ones((40, 2)), np.random.default_rng(0))
    >>> int((masked == 0).all(axis=1).sum()) <= 5
    True
    """

    def mask(x: Array, rng: np.random.Generator) -> Array:
        masked = np.array(x)
        for _ in range(count):
            length = min(int(rng.integers(steps + 1)), len(x))
            begin = int(rng.integers(len(x) - length + 1))
            masked[begin : begin + length] = 0
        return masked

    return mask
