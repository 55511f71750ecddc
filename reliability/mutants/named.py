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
    "no pair of a deep network turns": Patch(
        f"{_SRC}/reservoir/_deep_reservoir.py", "TURNING_SHARE = 0.5", "TURNING_SHARE = 0.0"
    ),
    "deep networks learn with one step size": Patch(
        f"{_SRC}/training/objectives/deep_network.py",
        "return float(1 + np.cos(np.pi * (done - WARM_UP_SHARE) / (1 - WARM_UP_SHARE))) / 2",
        "return 1.0",
    ),
    "labels of deep networks are not smoothed": Patch(
        f"{_SRC}/training/objectives/deep_network.py", "R[labels] += smoothing", "R[labels] += 0.0"
    ),
    "deep networks keep the last epoch": Patch(
        f"{_SRC}/fitting/depth.py",
        "DeepFit(drawn.with_weights(result.best), _readout_rows(result.best),",
        "DeepFit(drawn.with_weights(objective.weights), _readout_rows(objective.weights),",
    ),
    "deep networks are examined on their training data": Patch(
        f"{_SRC}/fitting/depth.py", "data = split.held_out or split.train", "data = split.train"
    ),
    "no dropout unless it is given": Patch(
        f"{_SRC}/fitting/depth.py",
        "return min(MAX_DROPOUT, DROPOUT_PER_ROOT * float(np.sqrt(weights / targets)))",
        "return 0.0",
    ),
    "the first network of an ensemble alone": Patch(
        f"{_SRC}/fitting/depth.py",
        "network = DeepNetwork(tuple(fit.stack for fit in fits),",
        "network = DeepNetwork(tuple(fits[0].stack for _ in fits),",
    ),
    "corrections of forecasts are trusted fully": Patch(
        f"{_SRC}/forecasting/correction.py", "TRUST_SHARE = 0.6", "TRUST_SHARE = 1.0"
    ),
    "a forecast that runs away is no news": Patch(
        f"{_SRC}/forecasting/loop_forecast.py", "RUNAWAY_DEVIATIONS = 100.0", "RUNAWAY_DEVIATIONS = 1e300"
    ),
    "intervals as narrow as the errors of training": Patch(
        f"{_SRC}/forecasting/direct_model.py", "FITTED_PARAMETERS = 2.5", "FITTED_PARAMETERS = 0.0"
    ),
    "a series may repeat by chance": Patch(f"{_SRC}/forecasting/seasons.py", "MAX_CHANCE = 0.02", "MAX_CHANCE = 1.0"),
    "levels learn from odd values": Patch(
        f"{_SRC}/forecasting/smoothing.py", "MAX_LEARNED_CHANGES = 8.0", "MAX_LEARNED_CHANGES = 1e9"
    ),
    "loops win without a gain": Patch(
        f"{_SRC}/forecasting/forecast.py", "MIN_LOOP_GAIN_SHARE = 0.1", "MIN_LOOP_GAIN_SHARE = -9.0"
    ),
}
