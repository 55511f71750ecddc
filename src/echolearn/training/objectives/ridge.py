"""What learning keeps in a checkpoint, and how it is taken up again: to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from echolearn.modelfile.checkpoint import Checkpoint, Midway, State, filed, shapes_of, under
from echolearn.readout.statistics import Sums

Array = NDArray[Any]

if TYPE_CHECKING:
    from echolearn.training.loop import Learner, Record


def state(learner: Learner, record: Record) -> State:
    """Arrays and plain values from which `resume` goes on."""
    number, memories = learner.optimiser.state()
    tensors = filed("weights", learner.weights)  # not by way of the reservoir: a logit would be rounded
    for memory, values in memories.items():
        tensors |= filed(memory, values)
    for name in ("reservoir", "began"):
        tensors |= filed(name, getattr(learner, name).weights())
    for name in ("best", "safe"):
        tensors |= filed(name, getattr(record, name).weights())
    facts = {"optimiser": number, "step_size": learner.step_size, "rng": learner.rng.bit_generator.state}
    if learner.sums is not None:
        tensors |= {"G": learner.sums.G, "Q": learner.sums.Q}
        facts |= {"tt": learner.sums.tt, "n": learner.sums.n}
    solved, facts["solved_n"] = learner.solved
    tensors |= {k: U for k, U in (("U", learner.U), ("held", learner.held), ("solved", solved)) if U is not None}
    if learner.pending is not None:
        facts["pending"] = learner.pending
    if learner.midway is not None:
        facts["midway"] = learner.midway.facts()
    if learner.midway is not None and learner.follower is not None:
        more, facts["following"] = learner.follower.state()
        tensors |= more
    facts |= {
        "best_error": record.best_error,
        "best_epoch": record.best_epoch,
        "backoffs": record.backoffs,
        "seconds": record.seconds,
        "history": list(record.history),
    }
    return tensors, facts


def resume(learner: Learner, record: Record, checkpoint: Checkpoint) -> bool:
    """Both as they were when the newest state was kept; False if there is none."""
    M = learner.task.rows(learner.reservoir)
    kept = checkpoint.load(shapes_of(learner.reservoir, M, learner.data.n_out))
    if kept is None:
        return False
    with checkpoint.restoring():
        _taken_up(learner, record, *kept)
    return True


def _taken_up(learner: Learner, record: Record, tensors: dict[str, Array], facts: dict[str, Any]) -> None:
    drawn = learner.reservoir
    record.best, record.safe = (drawn.with_weights(**under(name, tensors)) for name in ("best", "safe"))
    record.best_error, record.best_epoch = float(facts["best_error"]), int(facts["best_epoch"])
    record.backoffs, record.seconds = int(facts["backoffs"]), float(facts["seconds"])
    record.history.extend(facts["history"])
    learner.restart(drawn.with_weights(**under("reservoir", tensors)))
    learner.began = drawn.with_weights(**under("began", tensors))
    learner.weights = under("weights", tensors)
    memories = {memory: under(memory, tensors) for memory in ("before", "first", "second")}
    learner.optimiser = learner.optimiser.resumed(float(facts["optimiser"]), {k: v for k, v in memories.items() if v})
    learner.step_size = float(facts["step_size"])
    if "G" in tensors:
        learner.sums = Sums(tensors["G"], tensors["Q"], float(facts["tt"]), float(facts["n"]))
    learner.U, learner.held = tensors.get("U"), tensors.get("held")
    learner.solved = tensors.get("solved"), float(facts["solved_n"])
    if "pending" in facts:
        learner.pending = {name: float(facts["pending"][name]) for name in ("error", *facts["pending"])}
    if "midway" in facts:
        size = learner.plan.batch_size or len(learner.data.lengths)
        learner.midway = Midway.resumed(facts["midway"], learner.data.lengths, size, learner.rng)
    if "following" in facts and learner.follower is not None:
        learner.follower.resume(tensors, facts["following"])
    learner.rng.bit_generator.state = facts["rng"]
