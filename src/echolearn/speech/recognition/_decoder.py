"""From probabilities of states to tokens: scaled log probabilities, the search, and the choice of its weights.

The search needs p(x | state), a network gives p(state | x) = p(x | state) p(state) / p(x). Dividing by the state's
share of the training frames would undo the network's prior wholly; an exponent between 0 and 1 undoes it in part, which
is better when the language model knows part of it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from echolearn.speech._typing import Progress
from echolearn.speech.recognition._graph import Graph
from echolearn.speech.recognition._lattices import BEAM, Lattice, build_lattice
from echolearn.speech.recognition._search import Search, Token
from echolearn.validation import Array

SMALLEST = 1e-10  # probabilities below count as this
# what `tune` tries for each weight, one after another
CHOICES: dict[str, tuple[float, ...]] = {
    "language_weight": (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0),
    "penalty": (-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0),
    "prior_exponent": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "duration_weight": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
}
ROUNDS = 2
BEAMS = (20.0, 30.0, 40.0, 60.0, 80.0, 120.0, 160.0)  # tried from the widest down, after the weights


@dataclass(frozen=True)
class DecodingWeights:
    """How much each part of a score counts.

    Parameters
    ----------
    prior_exponent : float, default 0.6
        How far the share of a state among the training frames is divided out: 0 not at all, 1 wholly.
    language_weight : float, default 2.0
        Factor of the language model. Neighbouring frames are not independent, so that the network's probabilities
        weigh too much beside a factor of 1.
    duration_weight : float, default 1.0
        Factor of the durations.
    penalty : float, default 0.0
        Subtracted for every token. Raise it if there are too many insertions.
    beam : float, default 40.0
        How far below the best score a path may be before it is given up. A smaller one is faster and finds worse paths.
    confidence_scale : float, default 0.3
        Factor of all scores when confidences are computed; see `echolearn.speech.recognition._confidence.calibrate`.
    """

    prior_exponent: float = 0.6
    language_weight: float = 2.0
    duration_weight: float = 1.0
    penalty: float = 0.0
    beam: float = 40.0
    confidence_scale: float = 0.3


@dataclass(frozen=True)
class Decoder:
    """Finds the most probable tokens of utterances whose states have probabilities.

    Parameters
    ----------
    graph : Graph
        What may follow what.
    priors : array of shape (n_states,)
        Share of each state among the training frames.
    weights : DecodingWeights, optional
        How much each part of a score counts.
    """

    graph: Graph
    priors: NDArray[np.float64]
    weights: DecodingWeights = field(default_factory=DecodingWeights)

    def emissions(self, probabilities: Array) -> NDArray[np.float32]:
        """Return scaled log probabilities for the search.

        Parameters
        ----------
        probabilities : array of shape (n_frames, n_states)
            Probability of each state at each frame.

        Returns
        -------
        array of shape (n_frames, n_states), float32
            Their logarithms, with the prior divided out as far as `prior_exponent` says.
        """
        scaled = scaled_logarithms(probabilities, self.priors, self.weights.prior_exponent)
        emissions: NDArray[np.float32] = scaled.astype(np.float32)
        return emissions

    def search(self) -> Search:
        """Return a search that has taken no frame yet.

        Returns
        -------
        Search
            The search; its `advance` takes what `emissions` returns.
        """
        w = self.weights
        arcs = self.graph.weights(
            duration_weight=w.duration_weight, language_weight=w.language_weight, penalty=w.penalty
        )
        return Search(self.graph, arcs, w.language_weight, w.beam)

    def decode(self, probabilities: Array, *, confidences: bool = False) -> list[Token]:
        """Return the tokens of one utterance.

        Parameters
        ----------
        probabilities : array of shape (n_frames, n_states)
            Probability of each state at each frame.
        confidences : bool, default False
            Whether to compute the confidence of every token from a lattice, which takes some times as long.

        Returns
        -------
        list of Token
            The tokens with their frames. Where the beam has lost every path that can end, the search is repeated with a
            wider one.
        """
        if confidences:
            lattice = self.lattice(probabilities)
            return lattice.confidences(lattice.best(), self.weights.confidence_scale)
        emissions = self.emissions(probabilities)
        search = self.search()
        search.advance(emissions)
        tokens, score = search.best()
        if score == -np.inf and np.isfinite(search.beam):
            search = self._without_beam().search()
            search.advance(emissions)
            tokens, score = search.best()
        return tokens

    def lattice(self, probabilities: Array, *, beam: float | None = None) -> Lattice:
        """Return the lattice of one utterance: all paths that are not much worse than the best one.

        Parameters
        ----------
        probabilities : array of shape (n_frames, n_states)
            Probability of each state at each frame.
        beam : float, optional
            How far below the score of the best path that of another may be; 20 by default. A larger one gives a larger
            lattice; one above the search's own `beam` may miss paths that the search has given up.

        Returns
        -------
        Lattice
            The lattice. Its best path is what `decode` returns.
        """
        emissions = self.emissions(probabilities)
        width = BEAM if beam is None else beam
        lattice = build_lattice(self.search(), emissions, penalty=self.weights.penalty, beam=width)
        if not len(lattice.start) and np.isfinite(self.weights.beam):
            search = self._without_beam().search()
            lattice = build_lattice(search, emissions, penalty=self.weights.penalty, beam=width)
        return lattice

    def _without_beam(self) -> Decoder:
        return replace(self, weights=replace(self.weights, beam=np.inf))


def scaled_logarithms(probabilities: Array, priors: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Return log probabilities of states with their priors divided out.

    Parameters
    ----------
    probabilities : array of shape (n_frames, n_states)
        Probability of each state at each frame.
    priors : array of shape (n_states,)
        Share of each state among the training frames.
    exponent : float
        How far the priors are divided out: 0 not at all, 1 wholly.

    Returns
    -------
    array of shape (n_frames, n_states)
        The logarithms.
    """
    scaled = np.log(np.maximum(probabilities, SMALLEST)) - exponent * np.log(np.maximum(priors, SMALLEST))
    logarithms: NDArray[np.float64] = scaled.astype(np.float64)
    return logarithms


def state_shares(labels: Iterable[Array], n_states: int) -> NDArray[np.float64]:
    """Return the share of each state among frames, with one frame added to each.

    Parameters
    ----------
    labels : iterable of array of shape (n_frames,)
        State labels of the training utterances.
    n_states : int
        Number of states.

    Returns
    -------
    array of shape (n_states,)
        The shares.

    Examples
    --------
    >>> state_shares([np.array([0, 0, 0, 1])], 2)
    array([0.66666667, 0.33333333])
    """
    counts = np.ones(n_states)
    for one in labels:
        counts += np.bincount(one, minlength=n_states)
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def tune(
    decoder: Decoder,
    error: Callable[[Mapping[str, Sequence[Token]]], float],
    probabilities: Mapping[str, Array],
    *,
    choices: Mapping[str, Sequence[float]] = CHOICES,
    progress: Progress | None = None,
) -> tuple[Decoder, float]:
    """Choose the weights of a decoder on validation utterances, one after another in two rounds, and then the beam.

    Parameters
    ----------
    decoder : Decoder
        The decoder to start from.
    error : callable
        Gives the error of the tokens of all utterances, by name.
    probabilities : mapping of str to array of shape (n_frames, n_states)
        Probabilities of the validation utterances. Never use the test part here.
    choices : mapping of str to sequence of float, optional
        What is tried for each weight; a weight that is not named stays what it is.
    progress : callable, optional
        Called as `progress(text, done, total)`.

    Returns
    -------
    decoder : Decoder
        The same decoder with the weights of the smallest error; of equal errors the first that was tried. Its beam is
        the narrowest whose error is not above that of the widest.
    error : float
        Its error.
    """

    def tried(weights: DecodingWeights) -> float:
        one = replace(decoder, weights=weights)
        return error({name: one.decode(P) for name, P in probabilities.items()})

    best = decoder.weights
    lowest = tried(best)
    steps = [(name, value) for _ in range(ROUNDS) for name, values in choices.items() for value in values]
    total = len(steps) + len(BEAMS)
    for done, (name, value) in enumerate(steps):
        if progress is not None:
            progress("weights of the decoder", done, total)
        if getattr(best, name) != value:
            weights = replace(best, **{name: value})
            found = tried(weights)
            if found < lowest:
                best, lowest = weights, found
    lowest = np.inf
    for done, beam in enumerate(reversed(BEAMS), len(steps)):
        if progress is not None:
            progress("beam of the decoder", done, total)
        weights = replace(best, beam=beam)
        found = tried(weights)
        if found > lowest:
            break
        best, lowest = weights, found
    return replace(decoder, weights=best), float(lowest)
