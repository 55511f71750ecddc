"""One learned network for speech, trained within a budget of processor seconds: our side of the contest on AN4.

`train` learns all weights of one echo state network, or of layers of them, on the cross entropy. The gradients are
those of `echolearn.gradients.exact`, the utterances of every epoch are warped anew (`echolearn.speech._augmentation`),
and the step size falls along a cosine to zero at the end of the budget. Time is cut into windows: after each there is a
step, and the next one starts in the states in which it ended, so that 16 utterances, which fill the lanes of the
compiled loops, give many steps and not one. The weights at the end are the result; the validation part is only scored.
With `hidden_units` among the settings, `ESNClassifier` is fitted instead, as users have it.
"""

import time
from dataclasses import dataclass, field, fields, replace

import numpy as np

from echolearn import ESNClassifier
from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.parameters import grouped_settings
from echolearn.gradients import exact
from echolearn.readout.network import probabilities
from echolearn.reservoir import Reservoir
from echolearn.reservoir._reservoir import bidirectional_reservoir
from echolearn.sequences.batch import draw_minibatches, group_sequences, pack
from echolearn.speech import normalised, warp_matrix, warped_copies, with_context, with_differences
from echolearn.speech._augmentation import FACTOR_STEPS
from echolearn.speech._features import CEPSTRA, CONTEXT_FRAMES
from echolearn.states.run import run
from echolearn.training.optimizers import Adam, learned_weights, with_learned

BAND = {"low": 133.33, "high": 6855.5, "lifter": 0.0}  # of the filter bank by which AN4's cepstra were computed
FRAMES = 8192  # run at once in a prediction
RESERVE = 0.985  # share of the budget after which no further step is begun


@dataclass(frozen=True)
class Settings:
    """The settings of one budget.

    units: of each layer; a layer sees the states of the one below and the inputs, the readout sees all of them. spread:
    of the warps, and plain: the share of utterances that are not warped. dropout: of states, as layers above and the
    readout see them. decay: of input and recurrent weights, in units of the step size. window: frames of a window,
    through which errors are carried back; 0: whole utterances, as units that run backward need.
    """

    units: tuple = (300,)
    connections: int = 30
    input_scaling: float = 0.1
    inner_scaling: float = 0.05
    leak: tuple = (0.03, 0.9)
    bidirectional: bool = False
    spread: float = 0.15
    plain: float = 0.0
    dropout: float = 0.0
    decay: float = 0.0
    step_size: float = 0.01
    batch_size: int = 16
    window: int = 64

    @classmethod
    def of(cls, settings):
        """Return the settings of a dict; names that are not settings (of trials and their errors) are refused."""
        unknown = set(settings) - {f.name for f in fields(cls)}
        if unknown:
            raise ValueError(f"settings has {sorted(unknown)}; expected {[f.name for f in fields(cls)]}")
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in settings.items()})


class Utterances:
    """Cepstra with their differences, normalised per utterance, plain or warped.

    Warps and differences can be exchanged, and the deviations after a warp A follow from the covariances C before it
    (A C A'), so that a warped, normalised utterance is one matrix product.
    """

    def __init__(self, cepstra, spread):
        self.centred, self.covariances = [], []
        for c in cepstra:
            x = with_differences(np.asarray(c, np.float32))
            x = x - x.mean(axis=0)
            self.centred.append(x)
            blocks = x.reshape(len(x), 3, CEPSTRA).astype(np.float64)
            self.covariances.append(np.einsum("tbi,tbj->bij", blocks, blocks) / len(x))
        factors = (1 + spread) ** np.linspace(-1, 1, FACTOR_STEPS) if spread else ()
        self.warps = [warp_matrix(f, **BAND) for f in factors]

    def __len__(self):
        return len(self.centred)

    def inputs(self, i, rng=None, plain=0.0):
        """Return utterance i with its context; with a generator, warped by a random factor."""
        A = np.eye(CEPSTRA)
        if rng is not None and self.warps and rng.random() >= plain:
            A = self.warps[int(rng.integers(len(self.warps)))]
        deviations = np.sqrt(np.einsum("ij,bjk,ik->bi", A, self.covariances[i], A))
        still = deviations < 1e-5
        matrices = (A.T[None] * (~still / np.where(still, 1, deviations))[:, None, :]).astype(np.float32)
        x = self.centred[i].reshape(-1, 3, CEPSTRA).transpose(1, 0, 2) @ matrices
        return with_context(np.ascontiguousarray(x.transpose(1, 0, 2)).reshape(-1, 3 * CEPSTRA))


@dataclass
class Layers:
    """Reservoirs one above the other, and a softmax readout V of all their states and the inputs."""

    reservoirs: list
    V: np.ndarray
    dropout: float = 0.0
    learned: list = field(default_factory=list)

    @classmethod
    def draw(cls, s, n_in, n_out, rng):
        """Draw the weights; the readout begins at zero."""
        reservoirs, width = [], n_in
        for scaling, units in zip((s.input_scaling, *[s.inner_scaling] * 9), s.units, strict=False):
            halves = (units - units // 2, units // 2) if s.bidirectional else (units,)
            parts = [_drawn(s, width, n, scaling, rng) for n in halves]
            reservoirs.append(bidirectional_reservoir(*parts) if s.bidirectional else parts[0])
            width = units + n_in
        V = np.zeros((sum(s.units) + n_in + 1, n_out), np.float32)
        return cls(reservoirs, V, s.dropout, [learned_weights(r, "both", True) for r in reservoirs])

    def weights(self):
        """Return all weights by name."""
        return {f"{k}/{name}": w for k, own in enumerate(self.learned) for name, w in own.items()} | {"V": self.V}

    def take(self, weights):
        """Replace all weights."""
        self.learned = [{name: weights[f"{k}/{name}"] for name in own} for k, own in enumerate(self.learned)]
        self.reservoirs = [with_learned(r, own) for r, own in zip(self.reservoirs, self.learned, strict=True)]
        self.V = weights["V"].astype(np.float32)

    def run(self, batch, rng=None, *, starts=None, keep_F=True):
        """Return H_c = [H_1 ... H_L X 1] of a batch, and of each layer its batch, states and dropout mask."""
        X, below, seen = batch.X, batch.X, []
        passed = []
        for k, r in enumerate(self.reservoirs):
            own = replace(batch, X=below)
            states = run(r, own, starts[k] if starts else None, keep_F=keep_F)
            mask = None
            if rng is not None and self.dropout:
                kept = rng.integers(0, 256, states.H.shape, dtype=np.uint8) >= round(256 * self.dropout)
                mask = kept * np.float32(1 / (1 - self.dropout))
            passed.append(states.H if mask is None else states.H * mask)
            seen.append((own, states, mask))
            below = np.concatenate([passed[-1], X], axis=1)
        return np.concatenate([*passed, X, np.ones((len(X), 1), np.float32)], axis=1), seen

    def gradients(self, batch, rng, starts=None, frames=0):
        """Return the gradients of the cross entropy of a batch by all weights, and the states of each layer.

        frames: what the sum is divided by, so that the few frames at the end of a batch count for little; 0: the mean.
        """
        H_c, seen = self.run(batch, rng, starts=starts)
        R = probabilities(H_c @ self.V)
        R[np.arange(len(R)), batch.T] -= 1
        R /= frames or len(R)
        found = {"V": H_c.T @ R}
        from_readout = R @ self.V[: sum(r.N for r in self.reservoirs)].T
        ends = np.cumsum([r.N for r in self.reservoirs])
        above = 0.0
        for k in reversed(range(len(seen))):
            r, (own, states, mask) = self.reservoirs[k], seen[k]
            dE_dH = from_readout[:, ends[k] - r.N : ends[k]] + above
            Z = np.ascontiguousarray(dE_dH if mask is None else dE_dH * mask, dtype=np.float32)
            g = exact.through_time(r, own, states, Z, lookback=None, washout=0)  # Z is now dE/dz
            for name in self.learned[k]:
                value = getattr(g, name)
                found[f"{k}/{name}"] = value * r.leak * (1 - r.leak) if name == "leak" else value
            if k:
                above = Z @ r.W[: self.reservoirs[k - 1].N].T.astype(np.float32)
        return found, [states.H for _, states, _ in seen]


def _drawn(s, n_in, units, scaling, rng):
    """Return a random reservoir."""
    return Reservoir.random(
        n_in,
        units,
        connections=min(s.connections, units),
        input_scaling=scaling,
        bias_scaling=0.1,
        leak=s.leak,
        random_state=rng,
    )


def train(data, settings, core_seconds, seed):
    """Train one network within a budget of processor time; return its answers and facts.

    data: {"train": (cepstra, labels), "valid": (cepstra, labels)}, lists of (frames, 13) and of (frames,). settings: a
    dict of `Settings`. The compiled loops are compiled before the clock starts. Returns probabilities(cepstra), from a
    list of (frames, 13) to a list of (frames, classes), and a dict of facts.
    """
    if "hidden_units" in settings:
        return fit_estimator(data, dict(settings), seed)
    s = Settings.of(settings)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        _compile(data, s)
        began = time.process_time()
        model, epochs = _learn(data["train"], s, core_seconds, began, seed)
        seconds = time.process_time() - began

    def answers(cepstra):
        with one_blas_thread():
            return _probabilities(model, cepstra)

    facts = {
        "process_seconds": seconds,
        "epochs": epochs,
        "weights": int(sum(w.size for w in model.weights().values())),
        "valid_error": error_rate(answers(data["valid"][0]), data["valid"][1]),
    }
    return answers, facts


def fit_estimator(data, settings, seed):
    """Fit `ESNClassifier` as users have it; settings: its parameters, and `copies` with `spread` of the warps.

    Its seconds follow from its settings, which are chosen to fit the budget; the contest charges what they are.
    """
    copies, spread = settings.pop("copies", 0), settings.pop("spread", 0.1)
    began = time.process_time()
    X, y = data["train"]
    warped = warped_copies(X, copies, spread, np.random.default_rng(seed), **BAND) if copies else []
    X, y = [*X, *warped], [*y, *(list(y) * copies)]
    valid = data["valid"]
    esn = ESNClassifier(**grouped_settings(settings, ESNClassifier), random_state=seed)
    esn.fit(prepared(X), y, validation=(prepared(valid[0]), valid[1]))
    seconds = time.process_time() - began
    n_out = 1 + max(int(labels.max()) for labels in y)

    def answers(cepstra):
        found = []
        for P in esn.predict_proba(prepared(cepstra)):
            every = np.zeros((len(P), n_out), np.float32)
            every[:, esn.classes_] = P
            found.append(every)
        return found

    reservoir = esn.network_.reservoir
    return answers, {
        "process_seconds": seconds,
        "epochs": len(esn.history_) + len(esn.refinement_),
        "weights": int(reservoir.W.size + reservoir.W_rec.nnz + 2 * reservoir.N + esn.network_.readout.U.size),
        "valid_error": error_rate(answers(valid[0]), valid[1]),
    }


def prepared(cepstra):
    """Return the inputs of the estimators: with differences, normalised per utterance, with their context."""
    return [with_context(normalised(with_differences(np.asarray(c, np.float32)))) for c in cepstra]


def error_rate(answers, labels):
    """Return the share of frames, in percent, whose most probable class is not their label."""
    wrong = sum(int((p.argmax(axis=1) != y).sum()) for p, y in zip(answers, labels, strict=True))
    return 100.0 * wrong / sum(map(len, labels))


def _learn(part, s, core_seconds, began, seed):
    """Return the learned layers and the number of passes over the data, the last of which may be a part of one."""
    rng = np.random.default_rng(seed)
    utterances, labels = Utterances(part[0], s.spread), [np.asarray(y, np.int64) for y in part[1]]
    lengths = np.array([len(y) for y in labels])
    model = Layers.draw(s, 3 * CEPSTRA * CONTEXT_FRAMES, 1 + max(int(y.max()) for y in labels), rng)
    optimizer, frames = Adam(), 0
    while True:
        for which in draw_minibatches(lengths, s.batch_size, rng):
            X = [utterances.inputs(i, rng, s.plain) for i in which]
            for batch, starts in windows(pack(X, np.float32, [labels[i] for i in which]), s.window):
                done = (time.process_time() - began) / (RESERVE * core_seconds)
                if done >= 1:
                    return model, frames / lengths.sum()
                step_size = s.step_size * 0.5 * (1 + np.cos(np.pi * done))
                found, starts[:] = model.gradients(batch, rng, starts, s.batch_size * s.window)
                weights = model.weights()
                new, optimizer = optimizer.step(weights, found, step_size)
                if s.decay:
                    decays = {k: step_size * s.decay * k.endswith(("W", "W_rec")) for k in new}
                    new = {k: w - decays[k] * weights[k] for k, w in new.items()}
                model.take(new)
                frames += batch.frames


def windows(batch, steps):
    """Yield a batch in windows of so many steps, with a list to be filled with the states of each layer in the window.

    The list has, on entry, the states in which the sequences that are still running ended the window before.
    """
    if not steps:
        yield batch, []
        return
    starts = []
    for begin in range(0, len(batch.active), steps):
        part = batch.steps(begin, min(begin + steps, len(batch.active)))
        yield part, starts
        if begin + steps < len(batch.active):
            starts[:] = [H[part.offsets[-1] :][: batch.active[begin + steps]].copy() for H in starts]


def _probabilities(model, cepstra):
    """Return the probabilities of the classes for every frame of each utterance."""
    utterances, lengths = Utterances(cepstra, 0.0), np.array([len(c) for c in cepstra])
    found = [np.empty(0)] * len(cepstra)
    for which in group_sequences(lengths, FRAMES):
        batch = pack([utterances.inputs(i) for i in which], np.float32)
        P = probabilities(model.run(batch, keep_F=False)[0] @ model.V)
        for k, i in enumerate(batch.order):
            found[which[i]] = P[batch.rows(k)]
    return found


def _compile(data, s):
    """Run a small network of the same kind once, so that all loops are compiled."""
    few = tuple(column[:20] for column in data["train"])
    small = replace(s, units=tuple(32 for _ in s.units), connections=4)
    model, _ = _learn(few, small, 0.2, time.process_time(), 0)
    _probabilities(model, few[0][:8])
    _probabilities(model, few[0][:1])
    X = Utterances(few[0][:2], 0.0)
    for count in (1, 2):
        batch = pack([X.inputs(i) for i in range(count)], np.float32, few[1][:count])
        model.gradients(batch, None)
