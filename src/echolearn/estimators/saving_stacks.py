"""A stack in a model file: the parts of its layers as "number/name", its own settings and history (docs/format.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.estimators import parameters as rules
from echolearn.modelfile.history import history_rows, history_tensors
from echolearn.modelfile.layout import Check, Entry, Facts

Array = NDArray[Any]
Parts = tuple[dict[str, Array], Facts]

MOST = 1000  # layers
SCALE = "passed_scale"  # of a layer's outputs, for the one above
HISTORY = ("history", "history.there")


def parts(stack: Any, of_layer: Callable[[Any], Parts]) -> Parts:
    """Arrays and facts; the layers have their settings themselves."""
    tensors, columns = history_tensors(stack.history_)
    layers = []
    for number, layer in enumerate(stack.layers_):
        own, known = of_layer(layer)
        if number < len(stack._scales):
            own[SCALE] = stack._scales[number]
        layers.append(known)
        tensors |= {f"{number}/{name}": value for name, value in own.items()}
    settings = {name: value for name, value in stack.get_params(deep=False).items() if name != "layers"}
    if isinstance(settings["random_state"], np.random.Generator):
        settings["random_state"] = None
    facts = {"echolearn": layers[0]["echolearn"], "estimator": type(stack).__name__, "settings": settings}
    return tensors, {**facts, "history_columns": columns, "layers": layers}


def check(entries: Mapping[str, Entry], facts: Facts, layer: Check) -> None:
    """Every layer by its own rules, and that the arrays between them fit (ValueError)."""
    layers = facts["layers"]
    if not isinstance(layers, list) or not 2 <= len(layers) <= MOST:
        raise ValueError(f"{layers!r:.40} are not layers")
    columns = facts["history_columns"]
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ValueError(f"{columns!r:.40} are not the names of columns")
    numbers, there = (entries[name] for name in HISTORY)
    kinds, shape = (numbers.dtype, there.dtype), numbers.shape
    if kinds != ("F64", "BOOL") or shape != there.shape or shape[1:] != (len(columns),):
        raise ValueError("the history does not fit its columns")
    left = set(entries) - set(HISTORY)
    for number, known in enumerate(layers):
        if not isinstance(known, dict) or "layers" in known:
            raise ValueError(f"layer {number} is not one")
        own = {name.partition("/")[2]: name for name in left if name.partition("/")[0] == str(number)}
        left -= set(own.values())
        of_layer = {short: entries[name] for short, name in own.items()}
        scale = of_layer.pop(SCALE, None)
        layer(of_layer, known)
        wanted = None if number == len(layers) - 1 else ("F64", of_layer["U"].shape[1:])
        if (None if scale is None else (scale.dtype, scale.shape)) != wanted:
            raise ValueError(f"the scale of layer {number} is not what the layer above needs")
    if left:
        raise ValueError(f"it holds arrays of no layer: {min(left)!r:.40}")


def rebuild(tensors: dict[str, Array], facts: Facts, layer: Callable[[dict[str, Array], Facts], Any]) -> Any:
    from echolearn.estimators.stacked import StackedClassifier, StackedRegressor
    from echolearn.training.loop import History

    kinds = {kind.__name__: kind for kind in (StackedClassifier, StackedRegressor)}
    own = [
        {name.partition("/")[2]: value for name, value in tensors.items() if name.partition("/")[0] == str(number)}
        for number in range(len(facts["layers"]))
    ]
    scales = [arrays.pop(SCALE) for arrays in own[:-1]]
    if not all(np.isfinite(scale).all() and (scale > 0).all() for scale in scales):
        raise ValueError("a scale of what is passed on is not a positive number")
    layers = [layer(arrays, known) for arrays, known in zip(own, facts["layers"], strict=True)]
    stack = kinds[facts["estimator"]](layers, **facts["settings"])
    rules.check_each(facts["settings"])
    for below, above in pairwise(layers):
        beside = {"output": 0, "output+input": layers[0].n_features_in_, "output+hidden": below.hidden_units}
        expected = below._U.shape[1] + beside[stack.sees]
        if above.n_features_in_ != expected:
            raise ValueError(f"a layer takes {above.n_features_in_} inputs; expected {expected} from the one below")
    stack._adopt(layers, scales, History(history_rows(tensors, facts["history_columns"])))
    return stack
