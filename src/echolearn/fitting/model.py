"""What a fit has found, and where a prediction with it starts.

A network that starts in its initial state needs some steps to settle, and its answers there are poor. Sequences that
stand for themselves (utterances, gestures) start like that in training too. What follows a long series does not: it
continues from the state that the series has left. Or the user gives the frames before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from echolearn.display.facts import brief
from echolearn.exceptions import ClosedLoopWarning
from echolearn.execution.executor import Remote
from echolearn.fitting.codecs import TargetCodec, ValueCodec
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.parameters import Parameters
from echolearn.modelfile.layout import Facts
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.network import Network
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import Sequences, open_sequences, unpack
from echolearn.sequences.targets import open_targets
from echolearn.states.closed_loop import Start
from echolearn.training.history import History
from echolearn.validation import Array, SequencesLike, check_columns, warn_user

OPENING_FRAMES = 32  # by which a training series is recognised
COLD = "cold"
FED_BACK_DEVIATIONS = 10.0  # from the mean of the targets, at which a closed loop has left their range


@dataclass(frozen=True, eq=False)
class TrainingEnd:
    """Where one training series ended, so that what follows it can be predicted from there.

    state (N,); fed_back (n_out,): the last target, of a network with feedback; known (n_features,): the last known
    value of each feature; opening (some steps, n_features): the first frames, by which the series is recognised.
    """

    state: Array
    fed_back: Array | None
    known: Array
    opening: Array

    def __repr__(self) -> str:
        return brief(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedModel:
    """What a fit has found, and all that its file holds: the attribute `model_` of an estimator.

    estimator: the name of its class; settings: its parameters. refinement: the last epochs on the cross entropy.
    initial_reservoir: the weights before learning; None where they are not known, or the same. layout: which axis of X
    was taken as time. recipe: how raw data become X, as plain values that no estimator interprets; None: it is not
    known.
    """

    estimator: str
    settings: Parameters
    network: Network | DeepNetwork
    codec: TargetCodec
    inputs: InputCodec
    history: History = field(default_factory=History)
    refinement: History = field(default_factory=History)
    training_end: TrainingEnd | None = None
    initial_reservoir: Reservoir | None = None
    feature_names: Sequence[str] = ()
    target_names: Sequence[str] = ()
    layout: str = "time_first"
    recipe: Facts | None = None

    @property
    def dtype(self) -> str:
        """The precision of states and outputs."""
        return str(self.settings["dtype"])

    @property
    def per_step(self) -> bool:
        """Whether there is one target per step; otherwise there is one per sequence."""
        return self.network.per_step

    @property
    def single(self) -> Network:
        """The network of one layer; of a deep one there is none."""
        if not isinstance(self.network, Network):
            raise AttributeError(f"{self.estimator} has several layers, and no single reservoir; see network_.stacks.")
        return self.network

    def __repr__(self) -> str:
        return brief(self)


@dataclass(frozen=True, eq=False)
class Prediction:
    """Sequences as the network sees them, where they start, and how many first steps of each are still its washout."""

    data: Dataset
    start: Start | None
    unsettled: Array


def end_of_training(
    network: Network | DeepNetwork, data: Dataset, given: Sequences, inputs: InputCodec
) -> TrainingEnd | None:
    """Return where training ended, if it was one series with one target per step that runs forward."""
    if given.kind != "one" or not data.per_step or network.reservoir.backward is not None:
        return None
    if isinstance(given.X[0], Remote):
        return None
    end = network.end(data)
    known = inputs.last_known(given.X[0], inputs.unknown)
    fed_back = None if end.y is None else end.y[0].astype(np.float64)
    return TrainingEnd(end.h[0].astype(np.float64), fed_back, known, given.X[0][:OPENING_FRAMES].astype(np.float64))


def warn_of_runaway(outputs: Sequence[Array], codec: TargetCodec) -> None:
    """Warn if a network that receives its own outputs has left the range of the values that it was fitted to."""
    if not isinstance(codec, ValueCodec):
        return
    for i, Y in enumerate(outputs):
        far = np.abs(Y).max(axis=1) > FED_BACK_DEVIATIONS
        if far.any():
            warn_user(
                f"the network receives its own outputs, and in sequence {i} they leave the range of the training "
                f"targets: from step {int(far.argmax())} on, some are more than {FED_BACK_DEVIATIONS:g} standard "
                "deviations from the mean. Fit with state_noise=1e-3 or a larger ridge, or give "
                "warm_up=(frames, targets) to start from known outputs.",
                ClosedLoopWarning,
            )
            return


def begin_prediction(model: FittedModel, given: Sequences, warm_up: SequencesLike) -> Prediction:
    """Return the sequences of a prediction and where they start.

    warm_up: frames before each sequence, in the form of X; a pair (frames, targets) for a network with feedback;
    "cold"; or None, to continue the training series where there was one.
    """
    network, per_step = model.network, model.per_step
    cold = isinstance(warm_up, str) and warm_up == COLD
    washout = np.full(len(given.X), network.view.washout)
    if warm_up is None or cold or isinstance(given.X[0], Remote):
        end = None if cold else _continued(model, given)
        if end is not None:
            x = model.inputs.encode(given.X[0], model.dtype, end.known)
            data = Dataset.place([x], (), None, per_step=per_step, dtype=model.dtype)
            start = Start(end.state[None], None if end.fed_back is None else end.fed_back[None])
            return Prediction(data, start, np.zeros_like(washout))
        data = model.inputs.dataset(given.X, per_step=per_step, dtype=model.dtype)
        return Prediction(data, None, washout)
    _check_can_warm_up(network, per_step)
    return _warmed_up(model, given, warm_up)


def unsettled_steps(model: FittedModel, given: Sequences) -> Array:
    """Return how many first steps of each sequence are washout in a prediction without `warm_up`."""
    continued = not isinstance(given.X[0], Remote) and _continued(model, given) is not None
    return np.full(len(given.X), 0 if continued else model.network.view.washout)


def _continued(model: FittedModel, given: Sequences) -> TrainingEnd | None:
    """Return the end of training if the given sequence may follow it: one array, and not the training series itself."""
    end = model.training_end
    if end is None or given.kind != "one":
        return None
    x = given.X[0][: len(end.opening)]
    return None if np.array_equal(x, end.opening[: len(x)], equal_nan=True) else end


def _check_can_warm_up(network: Network | DeepNetwork, per_step: bool) -> None:
    """Refuse a warm-up where there is nothing to warm up."""
    if not per_step:
        raise ValueError("warm_up is for one answer per step; this network answers for whole sequences. Leave it out.")
    if network.reservoir.backward is not None:
        raise ValueError(
            "warm_up with bidirectional=True: half of the units start at the end of X. Predict the warm-up and X as "
            "one sequence, or fit a network with bidirectional=False."
        )


def _warmed_up(model: FittedModel, given: Sequences, warm_up: SequencesLike) -> Prediction:
    """Return sequences that start in the states in which the frames before them end."""
    network, inputs, dtype = model.network, model.inputs, model.dtype
    frames, targets = _frames_and_targets(warm_up)
    before = _open_frames(frames, given, model)
    both = [inputs.encode(np.concatenate([w, x]), dtype) for w, x in zip(before.X, given.X, strict=True)]
    cuts = before.lengths
    warm = Dataset.place([z[:n] for z, n in zip(both, cuts, strict=True)], (), None, per_step=True, dtype=dtype)
    if targets is not None:
        entries, found = open_targets(targets, before)
        if not found:
            raise ValueError("warm_up: its targets must have one entry per step.")
        warm = replace(warm, y=model.codec.encode(entries, True), classes=model.codec.classes)
    X = [z[n:] for z, n in zip(both, cuts, strict=True)]
    data = Dataset.place(X, (), None, per_step=True, dtype=dtype)
    return Prediction(data, network.end(warm), np.maximum(0, network.view.washout - cuts))


def _frames_and_targets(warm_up: SequencesLike) -> tuple[SequencesLike, SequencesLike]:
    """Return the frames of a warm-up and, if it is a pair, their targets."""
    return (warm_up[0], warm_up[1]) if isinstance(warm_up, tuple) and len(warm_up) == 2 else (warm_up, None)


def begin_stream(model: FittedModel, warm_up: SequencesLike) -> tuple[Start | None, Array]:
    """Return where a stream starts, and the last known value of each feature before it."""
    end, unknown = model.training_end, model.inputs.unknown
    if warm_up is None and end is not None:
        return Start(end.state[None], None if end.fed_back is None else end.fed_back[None]), end.known
    if warm_up is None or (isinstance(warm_up, str) and warm_up == COLD):
        return None, unknown
    _check_can_warm_up(model.network, model.per_step)
    nothing = Sequences([np.empty((0, model.inputs.n_features))], "one")
    before = _open_frames(_frames_and_targets(warm_up)[0], nothing, model)
    known = model.inputs.last_known(before.X[0], unknown)
    return _warmed_up(model, nothing, warm_up).start, known


def _open_frames(frames: SequencesLike, given: Sequences, model: FittedModel) -> Sequences:
    """Check the frames of a warm-up: as many sequences as X has, of the same names."""
    inputs, gaps = model.inputs, model.inputs.missing != "error"
    unpacked = unpack(frames)
    check_columns(unpacked.features, model.feature_names, "warm_up")
    try:
        before = open_sequences(unpacked, None, inputs.n_features, gaps=gaps, layout=model.layout)
    except (TypeError, ValueError) as problem:
        raise type(problem)(
            f"warm_up: {problem} Expected the frames before X in the form of X, 'cold' to start in the initial state, "
            "or None."
        ) from problem
    if len(before.X) != len(given.X):
        raise ValueError(
            f"warm_up has {len(before.X)} sequences, but X has {len(given.X)}; expected the frames before each of them."
        )
    if before.names is not None and given.names is not None and before.names != given.names:
        raise ValueError(
            "warm_up names other sequences than X, or in another order; expected the frames before each of them in the "
            "order of X."
        )
    return before
