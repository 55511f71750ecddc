"""The named mutants: choices on which the results stand, each made otherwise by an exact change of the source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Patch:
    """A text that occurs once in a source file, and what takes its place."""

    path: str
    old: str
    new: str

    def apply(self, source: str) -> str:
        """Return the source with the change; ValueError if it does not fit."""
        if source.count(self.old) != 1:
            raise ValueError(f"{self.path} holds {source.count(self.old)} times, not once: {self.old!r}")
        return source.replace(self.old, self.new)


_SRC = "src/echolearn"

MUTANTS = {
    "Table 1 stops on the test part": Patch(
        f"{_SRC}/paper/fits.py",
        "valid = parts.valid_known if",
        "valid = parts.test if",
    ),
    "an aligner trained on all parts": Patch(
        f"{_SRC}/speech/_preparation.py", "chosen = train[:: max(", "chosen = range(len(transcripts))[:: max("
    ),
    "refining keeps the last epoch": Patch(
        f"{_SRC}/fitting/stages.py", "reservoir, V = result.best", "reservoir, V = objective.snapshot()"
    ),
    "the weakest softmax penalty always": Patch(
        f"{_SRC}/readout/softmax.py", "        if not score < best_score:\n            break\n", ""
    ),
    "Case 1 mini-batches with a fresh U": Patch(
        f"{_SRC}/readout/trackers.py",
        "        if self.case == 2:\n            if self.U is None",
        "        if True:\n            if self.U is None",
    ),
    "Case 1 mini-batches as Case 2": Patch(
        f"{_SRC}/training/objectives/ridge.py",
        "solver.minibatches(data, task, plan.ridge, rng, plan.case,",
        "solver.minibatches(data, task, plan.ridge, rng, 2,",
    ),
    "Case 1 mini-batches with a fresh U, large networks": Patch(
        f"{_SRC}/readout/large/trackers.py",
        "U = self.U if self.case == 2 or self.held is None else self.held",
        "U = self.U",
    ),
    "eight steps of conjugate gradients": Patch(
        f"{_SRC}/readout/large/conjugate_gradients.py", "MAX_SOLVER_ITERATIONS = 20", "MAX_SOLVER_ITERATIONS = 8"
    ),
    "no phone error": Patch(
        f"{_SRC}/cli/evaluate.py", '"phone_error": float(wrong.sum() / counts.sum())', '"phone_error": 0.0'
    ),
    "states unseen in training do not count": Patch(
        f"{_SRC}/paper/fits.py",
        "float(np.mean(spoken != recognised))",
        "float(np.mean((spoken != recognised)[np.isin(spoken, estimator.classes_)]))",
    ),
    "the paper's settings with a clip of 0.01": Patch(
        f"{_SRC}/estimators/_classifier.py",
        '"clip": max(8.0, round(0.8 * hidden_units**0.5, 1)),',
        '"clip": 0.01,',
    ),
    "a speaker of the core test renamed": Patch(f"{_SRC}/speech/_sources/timit.py", "mtls0 fjlm0", "mtls1 fjlm0"),
    "a figure of the paper altered": Patch(
        f"{_SRC}/paper/table1.py", "(0.638, 0.542, 0.527, 0.521)", "(0.638, 0.542, 0.527, 0.512)"
    ),
}
