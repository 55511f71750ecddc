"""StackedClassifier and StackedRegressor: layers on layers (docs/stacks.md)."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin

from echolearn.estimators._stack import Stack
from echolearn.estimators.classifier import ESNClassifier
from echolearn.estimators.fitting import store
from echolearn.estimators.regressor import ESNRegressor


class StackedClassifier(ClassifierMixin, Stack):
    """Layers of echo state networks for a label a step, or one a sequence (docs/stacks.md).

    layers: numbers of hidden units, or ESNClassifiers with their settings, from the input to the top. sees: what a
    layer sees of the one below, "output", "output+input" (of the stack) or "output+hidden". joint_epochs: how long all
    layers learn together, after each has learned by itself; 0: not at all. step_size: of these epochs.
    """

    _kind = ESNClassifier

    def __init__(
        self,
        layers: Any = (150, 150),
        *,
        sees: str = "output",
        joint_epochs: int = 6,
        step_size: float | None = None,
        validation_fraction: float = 0.1,
        random_state: int | None = 0,
        verbose: int = 0,
    ):
        store(self, locals())

    def _prepare(self, entries: list[Any]) -> None:
        top = self.layers_[-1]
        top.per_step_ = self.per_step_
        top._encode(entries, fitting=True)
        self.classes_ = top.classes_
        for number, layer in enumerate(self.layers_, 1):
            if (layer.blocks or 1) > 1:
                raise ValueError(
                    f"blocks={layer.blocks} in layer {number}; expected None or 1: a layer has one readout."
                )
            layer._named_classes = top.classes_
            layer.set_params(blocks=1)
            if layer is not top:
                layer.set_params(readout="softmax" if self._entropy else "ridge")

    def _take_units(self, layer: Any) -> None:
        """Labels have no units."""

    @property
    def _entropy(self) -> bool:
        # one label a sequence is little for the cross entropy of all weights (see ESNClassifier)
        return bool(self.per_step_ and self.layers_[-1].readout == "softmax")

    def decision_function(self, X: Any, *, lengths: Any = None) -> Any:
        """The top layer's outputs a class; for two classes, their difference."""
        return self._asked("decision_function", X, lengths)

    def predict_proba(self, X: Any, *, lengths: Any = None) -> Any:
        """Probabilities a class."""
        return self._asked("predict_proba", X, lengths)

    def predict_log_proba(self, X: Any, *, lengths: Any = None) -> Any:
        return self._asked("predict_log_proba", X, lengths)

    def score(self, X: Any, y: Any, *, lengths: Any = None) -> float:
        """The share of right labels over all steps (or sequences)."""
        return self._scored(X, y, lengths)


class StackedRegressor(RegressorMixin, Stack):
    """Layers of echo state networks for values a step, or for one (or one vector) a sequence; settings as in
    StackedClassifier, with ESNRegressors."""

    _kind = ESNRegressor
    _entropy = False

    def __init__(
        self,
        layers: Any = (150, 150),
        *,
        sees: str = "output",
        joint_epochs: int = 6,
        step_size: float | None = None,
        validation_fraction: float = 0.1,
        random_state: int | None = 0,
        verbose: int = 0,
    ):
        store(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _prepare(self, entries: list[Any]) -> None:
        """Nothing depends on the targets."""

    def _take_units(self, layer: Any) -> None:
        layer.target_mean_, layer.target_scale_ = self.layers_[-1].target_mean_, self.layers_[-1].target_scale_

    def score(self, X: Any, y: Any, *, lengths: Any = None) -> float:
        """R² over all steps (or sequences), averaged over outputs."""
        return self._scored(X, y, lengths)
