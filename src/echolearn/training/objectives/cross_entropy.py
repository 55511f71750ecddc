"""The cross entropy: the last epochs of a classifier, in which every weight is learned, its softmax readout too.

    E = -1/n Σ log softmax(H_c V)[label] + strength/2 ||V||²

V takes the preconditioned steps of `readout.softmax`, so that it stays close to the best V for the changing states. At
the best V its own change adds nothing to first order (as for U, see `gradients.exact`), and

    dE/dH = (P - T) V_h' / n,        P = softmax(H_c V),

is propagated back through time like 2 R U_h' of the squared error. Where targets have weights w, the rows of P - T are
multiplied by them, and n = Σ w.
"""

from __future__ import annotations

from dataclasses import dataclass

from echolearn.gradients.batch import through_states
from echolearn.gradients.exact import Gradients
from echolearn.modelfile.checkpoint import Shape
from echolearn.modelfile.layout import Facts, Tensors
from echolearn.readout.network import Network, probabilities, sum_of_errors
from echolearn.readout.softmax import PreconditionedMomentum, cross_entropy, entropy
from echolearn.readout.solver import RidgeFit
from echolearn.readout.statistics import residual, weighted
from echolearn.readout.view import Task, observe
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import Batch, split_minibatch
from echolearn.sequences.dataset import Dataset
from echolearn.training.loop import Pause
from echolearn.training.objectives.ridge import STEP_FALL_SHARE, LearningPlan, gives_finite_states, weight_shapes
from echolearn.training.optimizers import Adam, LearnedWeights, default_step_size, finite_norms, weights_under
from echolearn.validation import Array

REFINING_STEP_FACTOR = 0.3  # the step size of the weights, in units of that of the epochs on the squared error
REFINING_RATE = 1.0  # the rate of V; `readout.softmax.RATE` is for states that do not change


@dataclass(eq=False)
class EntropyGradient:
    """The sum -Σ log softmax(H_c V)[label] over n targets, and its derivatives. Additive over parts of a mini-batch."""

    gradients: Gradients
    dE_dV: Array
    loss: float
    n: float

    def __iadd__(self, other: EntropyGradient) -> EntropyGradient:
        self.gradients += other.gradients
        self.dE_dV += other.dE_dV
        self.loss += other.loss
        self.n += other.n
        return self


def entropy_gradient(reservoir: Reservoir, task: Task, V: Array, batch: Batch) -> EntropyGradient:
    """Return the cross entropy of a batch and its derivatives at V, which is given in the precision of the states."""
    seen = observe(reservoir, task, batch)
    P = probabilities(seen.H_c @ V)
    loss, n = sum_of_errors(entropy, P, seen.T, seen.w)
    R = weighted(residual(P, seen.T), seen.w)
    gradients = through_states(reservoir, task, "exact", seen, R @ V[: seen.H.shape[1]].T)
    return EntropyGradient(gradients, seen.H_c.T @ R, loss, n)


class CrossEntropyObjective:
    """The `Objective` of a network with a softmax readout, all of whose weights are learned on the cross entropy.

    held_out: data for validation, or None; fit: the ridge readout from which the softmax readout was started, for the
    preconditioner.
    """

    error_name = "cross_entropy"

    def __init__(
        self,
        network: Network,
        data: Dataset,
        held_out: Dataset | None,
        task: Task,
        plan: LearningPlan,
        *,
        fit: RidgeFit,
    ):
        self.data, self.held_out, self.task, self.plan = data, held_out, task, plan
        strength = network.readout.strength
        assert strength is not None
        inverse = fit.preconditioner(strength, data.dtype)
        self.readout = PreconditionedMomentum(network.readout.U, inverse, strength, data.dtype)
        reservoir = network.reservoir
        self.learned = LearnedWeights(reservoir, plan.learn, plan.learn_leak, Adam())
        self.step_size = REFINING_STEP_FACTOR * (
            plan.step_size if plan.optimizer == "adam" else default_step_size("adam", reservoir.N)
        )

    @property
    def validates(self) -> bool:
        return self.held_out is not None

    @property
    def batch_size(self) -> int:
        return self.plan.batch_size or len(self.data.lengths)

    @property
    def lengths(self) -> Array:
        return self.data.lengths

    def begin_epoch(self, pause: Pause) -> None:
        """Do nothing: there is nothing to prepare."""

    def step(self, which: Array, done: float) -> tuple[float, float]:
        reservoir, task, V = self.learned.reservoir, self.task, self.readout.V

        def gradient_of_group(data: Dataset, which: Array) -> EntropyGradient:
            return entropy_gradient(reservoir, task, V, data.batch(which))

        found = self.data.sum(
            gradient_of_group, split_minibatch(which, self.data.lengths, self.plan.threads, reservoir.N)
        )
        gradients = self.learned.by_weight(found.gradients)
        finite_norms(gradients, found.loss)
        fall = 1 - STEP_FALL_SHARE * done / self.plan.epochs
        self.learned.step(gradients, self.step_size * fall)
        self.readout.step(found.dE_dV / (found.n or 1.0), REFINING_RATE * fall)  # without any target, dE_dV is 0
        return found.loss, found.n

    def end_epoch(self) -> None:
        if self.plan.renormalize:
            self.learned.renormalize(self.plan.spectral_radius)

    def validation_error(self) -> float:
        assert self.held_out is not None
        return cross_entropy(self.learned.reservoir, self.held_out, self.task.view(), self.readout.V)

    def measurements(self) -> dict[str, float]:
        return {}

    def row(self, number: int, measurements: dict[str, float], seconds: float) -> dict[str, float]:
        return measurements

    def snapshot(self) -> tuple[Reservoir, Array]:
        return self.learned.reservoir, self.readout.V

    def restart(self, snapshot: tuple[Reservoir, Array]) -> None:
        raise NotImplementedError("an epoch on the cross entropy that diverges is not tried again")

    def is_stable(self, snapshot: tuple[Reservoir, Array]) -> bool:
        return gives_finite_states(snapshot[0], self.data)

    def pack(self, name: str, snapshot: tuple[Reservoir, Array]) -> Tensors:
        reservoir, V = snapshot
        return {**{f"{name}/{weight}": value for weight, value in reservoir.weights().items()}, f"{name}_V": V}

    def unpack(self, name: str, tensors: Tensors) -> tuple[Reservoir, Array]:
        return self.learned.reservoir.with_weights(**weights_under(f"{name}/", tensors)), tensors[f"{name}_V"]

    def shapes(self) -> dict[str, Shape]:
        like_V = dict.fromkeys(("V", "velocity", "best_V", "safe_V", "began_V"), self.readout.V.shape)
        return {**weight_shapes(self.learned.reservoir), **like_V}

    def state_dict(self, *, inside_epoch: bool) -> tuple[Tensors, Facts]:
        tensors, number = self.learned.state_dict()
        return {**tensors, "V": self.readout.V, "velocity": self.readout.velocity}, {"optimiser": number}

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        self.learned.load_state_dict(tensors, float(facts["optimiser"]))
        self.readout.V, self.readout.velocity = tensors["V"], tensors["velocity"]
