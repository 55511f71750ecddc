"""Learning for whole utterances: the true sequence of states against all sequences that a phone n-gram allows.

The cross entropy of a frame compares its true state with all states. That of an utterance compares its true sequence
of states with all sequences, each as probable as its states, their durations and the phone n-gram make it:

    E = log Σ_paths exp(score(path)) - score(true path),     score = Σ_t [log p_t(s_t) - a log prior(s_t)] + graph

With p = softmax(o) the derivative of E by the output o_t(s) is the occupancy of state s at frame t over all paths, less
1 for the true state: what p itself is in the cross entropy of frames. From there on everything is as it was: the error
goes back through time by the exact gradient. (In the field this is lattice-free maximum mutual information.) The part
`share` of the gradient is that of utterances, the rest that of frames.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from echolearn.estimators.classifier import ESNClassifier
from echolearn.estimators.fit_data import encoded_inputs
from echolearn.estimators.settings import NetworkSettings
from echolearn.execution.blas import one_blas_thread
from echolearn.gradients.batch import through_states
from echolearn.readout.collect import collect
from echolearn.readout.network import probabilities
from echolearn.readout.observation import Task, observe
from echolearn.readout.ridge import solve
from echolearn.readout.solver import ExactFit
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Batch
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import open_sequences
from echolearn.speech._typing import Progress
from echolearn.speech.recognition.decoder import state_shares
from echolearn.speech.recognition.graph import phone_graph
from echolearn.speech.recognition.learning import spoken_phones
from echolearn.speech.recognition.ngrams import estimate
from echolearn.speech.recognition.occupancies import AllPaths
from echolearn.speech.recognition.phonemodels import learn_phone_models
from echolearn.training.loop import Schedule, run_epochs
from echolearn.training.objectives.cross_entropy import BatchEntropy, CrossEntropyObjective, EntropyGradient
from echolearn.validation.array_types import Array

EPOCHS = 3
SHARE = 0.8


def all_phone_paths(labels: Sequence[Array], names: Sequence[str]) -> AllPaths:
    """Return all paths of phones, by a phone bigram and geometric durations of the training part.

    Parameters
    ----------
    labels : sequence of array of shape (n_frames,)
        State labels of the training utterances, indices into `names`.
    names : sequence of str
        Name of each state, in the order of the network's classes.

    Returns
    -------
    AllPaths
        The paths. The graph is smaller than that of a decoder, because all of it is followed at every frame.
    """
    phones = learn_phone_models(labels, names, positions=1)
    model = estimate([spoken_phones(one, names) for one in labels], order=2)
    return AllPaths(phone_graph(phones, model), state_shares(labels, len(names)))


@dataclass(frozen=True)
class SequenceGradient:
    """The loss of whole utterances and its derivatives, as `CrossEntropyObjective` calls for them.

    Parameters
    ----------
    paths : AllPaths
        What the true sequences are compared with.
    share : float
        Part of the gradient that is that of utterances, 0 to 1; the rest is the cross entropy of frames.
    """

    paths: AllPaths
    share: float = SHARE

    def __call__(self, reservoir: Reservoir, task: Task, V: Array, batch: Batch) -> EntropyGradient:
        """Return the loss of a batch, summed over its frames, and its derivatives at V."""
        seen = observe(reservoir, task, batch)
        P = probabilities(seen.H_c @ V)
        loss, R = 0.0, np.empty_like(P)
        for k in range(len(batch.order)):
            rows = batch.rows(k)
            one, R[rows] = self.of_utterance(P[rows], seen.T[rows])
            loss += one
        gradients = through_states(reservoir, task, "exact", seen, R @ V[: seen.H.shape[1]].T)
        return EntropyGradient(gradients, seen.H_c.T @ R, loss, float(len(R)))

    def of_utterance(self, P: Array, labels: Array) -> tuple[float, Array]:
        """Return the loss of one utterance and its derivative by the outputs.

        Parameters
        ----------
        P : array of shape (n_frames, n_states)
            Probabilities by the network.
        labels : array of shape (n_frames,)
            The true states.

        Returns
        -------
        loss : float
            The loss, up to the constant score of the true path in the graph.
        residual : array of shape (n_frames, n_states)
            Its derivative.
        """
        occupied, total = self.paths.occupancies(P)
        frames = np.arange(len(labels))
        own = np.log(np.maximum(P[frames, labels], 1e-10))
        prior = self.paths.weights.prior_exponent * np.log(self.paths.priors[labels])
        loss = self.share * (total - float((own - prior).sum())) - (1 - self.share) * float(own.sum())
        residual = self.share * occupied + (1 - self.share) * P
        residual[frames, labels] -= 1
        return loss, residual.astype(P.dtype)


def learn_sequences(
    model: ESNClassifier,
    X: Sequence[Array],
    y: Sequence[Array],
    *,
    epochs: int = EPOCHS,
    share: float = SHARE,
    random_state: int = 0,
    progress: Progress | None = None,
) -> ESNClassifier:
    """Learn all weights of a fitted network for some more epochs, on whole utterances.

    Parameters
    ----------
    model : ESNClassifier
        A fitted network for phone states with a softmax readout. It is not changed.
    X : sequence of array of shape (n_frames, n_columns)
        Features of the training utterances.
    y : sequence of array of shape (n_frames,)
        Names of their states, as the network's classes are named.
    epochs : int, default 3
        Passes over the utterances.
    share : float, default 0.8
        Part of the gradient that is that of utterances, 0 to 1; the rest is the cross entropy of frames, which keeps
        the network from leaving the states of single frames aside.
    random_state : int, default 0
        Seed of the order of utterances.
    progress : callable, optional
        Called as `progress(text, done, total)` after every epoch.

    Returns
    -------
    ESNClassifier
        The network after the last epoch. Its frame error is usually a little higher, its phone error lower; decide on
        validation utterances whether to use it.

    Raises
    ------
    ValueError
        If the network has no softmax readout, one label per sequence or a washout, or y has a state it does not know.
    """
    _check(model, share)
    names = model.classes_.tolist()
    codes = _codes(y, names)
    given = open_sequences(list(X))
    network, settings = model.network_, NetworkSettings.of(model.get_params(deep=False))
    inputs = encoded_inputs(given, model.inputs_, per_step=True, dtype=settings.dtype)
    data = Dataset.place(inputs.X, codes, len(names), per_step=True, dtype=settings.dtype)
    gradient = SequenceGradient(all_phone_paths(codes, names), share)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        statistics = collect(network.reservoir, data, network.view)
        ridge = network.readout.ridge
        fit = ExactFit(solve(statistics, ridge, intercept=True), ridge, statistics)
        objective = _objective(model, data, settings, epochs, fit=fit, gradient=gradient)
        result = run_epochs(
            objective, Schedule(epochs), rng=np.random.default_rng(random_state), on_epoch=_reported(epochs, progress)
        )
    reservoir, V = result.best
    learned = copy.copy(model)
    readout = replace(network.readout, U=V.astype(np.float64))
    learned.network_ = replace(network, reservoir=reservoir, readout=readout)
    return learned


def _objective(
    model: ESNClassifier,
    data: Dataset,
    settings: NetworkSettings,
    epochs: int,
    *,
    fit: ExactFit,
    gradient: BatchEntropy,
) -> CrossEntropyObjective:
    """Return the objective, with the settings by which the network was refined."""
    network = model.network_
    view = network.view
    task = Task(view.washout, view.direct, view.pooling, intercept=view.intercept)
    strength = fit.square / fit.n**2 if network.readout.strength is None else network.readout.strength
    started = replace(network, readout=replace(network.readout, strength=strength))
    plan = settings.plan(network.readout.ridge, epochs)
    return CrossEntropyObjective(started, data, None, task, plan, fit=fit, gradient=gradient)


def _reported(epochs: int, progress: Progress | None) -> Callable[[dict[str, float]], None]:
    def report(row: dict[str, float]) -> None:
        if progress is not None:
            progress("learning on whole utterances", int(row["epoch"]), epochs)

    return report


def _codes(y: Sequence[Array], names: Sequence[str]) -> list[Array]:
    """Return state names as numbers of classes."""
    number = {name: code for code, name in enumerate(names)}
    unknown = sorted({str(name) for one in y for name in np.unique(one)} - set(number))
    if unknown:
        raise ValueError(f"y has states that the network does not know: {', '.join(unknown[:5])}")
    return [np.array([number[str(name)] for name in one], dtype=np.int64) for one in y]


def _check(model: ESNClassifier, share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}, expected a number from 0 to 1")
    network = model.network_
    if not network.readout.softmax or not model.per_step_:
        raise ValueError("the network has no softmax readout of frames; fit ESNClassifier(readout='softmax')")
    if network.view.washout:
        raise ValueError(f"the network has a washout of {network.view.washout} frames; whole utterances need washout=0")
