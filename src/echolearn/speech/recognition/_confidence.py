"""How good confidences are, and the choice of the scale with which they are computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from echolearn.speech.phones import SILENCES
from echolearn.speech.recognition._decoder import Decoder
from echolearn.speech.recognition._search import Token
from echolearn.speech.scoring import align
from echolearn.validation import Array

SCALES = (0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1.0)
_LEAST = 1e-3  # confidences count as at least this far from 0 and 1


class ConfidenceQuality(NamedTuple):
    """The quality of confidences: how well they separate right tokens from wrong ones.

    Parameters
    ----------
    right, wrong : int
        Recognised tokens that are right, and those that are substitutions or insertions.
    roc_area : float
        Probability that a right token has a higher confidence than a wrong one: 0.5 by chance, 1 at best; NaN if all
        tokens are right, or all wrong.
    cross_entropy : float
        Normalised cross entropy: how much of the uncertainty about which tokens are right the confidences remove. 1 at
        best, 0 for confidences that are all equal to the share of right tokens, negative for misleading ones; NaN if
        all tokens are right, or all wrong.
    """

    right: int
    wrong: int
    roc_area: float
    cross_entropy: float


def calibrate(
    decoder: Decoder,
    references: Mapping[str, Sequence[str]],
    probabilities: Mapping[str, Array],
    *,
    ignore: Collection[str] = SILENCES,
    scales: Sequence[float] = SCALES,
) -> tuple[Decoder, ConfidenceQuality]:
    """Choose the scale of the confidences on validation utterances by their normalised cross entropy.

    Tune the other weights of the decoder first: they change the scores.

    Parameters
    ----------
    decoder : Decoder
        The decoder.
    references : mapping of str to sequence of str
        The spoken phones or words of each validation utterance.
    probabilities : mapping of str to array of shape (n_frames, n_states)
        The network's probabilities for the same utterances. Never use the test part here.
    ignore : collection of str, optional
        Tokens that do not count; by default silences.
    scales : sequence of float, optional
        The scales to try.

    Returns
    -------
    decoder : Decoder
        The same decoder with its `confidence_scale` set; unchanged if all tokens are right, or all wrong.
    quality : ConfidenceQuality
        How good its confidences are on these utterances.

    Raises
    ------
    ValueError
        If there is no utterance, or one of `probabilities` has no reference.
    """
    if not probabilities:
        raise ValueError("there is no utterance to choose the scale of confidences on")
    missing = [name for name in probabilities if name not in references]
    if missing:
        raise ValueError(f"{len(missing)} utterances have no reference: {', '.join(missing[:5])}")
    lattices = {name: decoder.lattice(P) for name, P in probabilities.items()}
    tried: list[tuple[ConfidenceQuality, float]] = []
    for scale in (decoder.weights.confidence_scale, *scales):
        found = {name: lattice.confidences(lattice.best(), scale) for name, lattice in lattices.items()}
        tried.append((confidence_quality(references, found, ignore=ignore), scale))
    quality, scale = max(tried, key=lambda one: np.nan_to_num(one[0].cross_entropy))
    return replace(decoder, weights=replace(decoder.weights, confidence_scale=scale)), quality


def confidence_quality(
    references: Mapping[str, Sequence[str]],
    recognised: Mapping[str, Sequence[Token]],
    *,
    ignore: Collection[str] = SILENCES,
) -> ConfidenceQuality:
    """Measure confidences against what was spoken.

    Parameters
    ----------
    references : mapping of str to sequence of str
        The spoken phones or words of each utterance.
    recognised : mapping of str to sequence of Token
        The recognised tokens of each utterance, with confidences.
    ignore : collection of str, optional
        Tokens that do not count; by default silences.

    Returns
    -------
    ConfidenceQuality
        The measures.

    Raises
    ------
    ValueError
        If a token has no confidence.

    Examples
    --------
    >>> heard = {"u": [Token("k", 0, 5, 0.9), Token("ah", 5, 9, 0.3), Token("t", 9, 12, 0.8)]}
    >>> quality = confidence_quality({"u": ["k", "ae", "t"]}, heard)
    >>> quality.right, quality.wrong, quality.roc_area, round(quality.cross_entropy, 3)
    (2, 1, 1.0, 0.641)
    """
    values: list[float] = []
    is_right: list[bool] = []
    for name, tokens in recognised.items():
        counted = [token for token in tokens if token.name not in ignore]
        pairs = align([word for word in references[name] if word not in ignore], [token.name for token in counted])
        for token in counted:
            if token.confidence is None:
                raise ValueError(f"the token {token.name!r} of {name!r} has none; decode with confidences=True")
            values.append(token.confidence)
        is_right.extend(spoken == heard for spoken, heard in pairs if heard is not None)
    return _quality(np.array(values, dtype=float), np.array(is_right, dtype=np.bool_))


def _quality(values: NDArray[np.float64], is_right: NDArray[np.bool_]) -> ConfidenceQuality:
    """Return the measures from the confidence of every token and whether it is right."""
    right, wrong = int(is_right.sum()), int((~is_right).sum())
    if not right or not wrong:
        return ConfidenceQuality(right, wrong, float("nan"), float("nan"))
    area = (rankdata(values)[is_right].sum() - right * (right + 1) / 2) / (right * wrong)
    p = np.clip(values, _LEAST, 1 - _LEAST)
    entropy = -right * np.log(right / (right + wrong)) - wrong * np.log(wrong / (right + wrong))
    remaining = -np.log(p[is_right]).sum() - np.log1p(-p[~is_right]).sum()
    return ConfidenceQuality(right, wrong, float(area), float(1 - remaining / entropy))
