"""Which arrays a model file has, and what their dtypes and shapes must be (docs/reference/model_file.md)."""

from __future__ import annotations

from collections.abc import Mapping

from echolearn.fitting.settings import check_each
from echolearn.modelfile.facts import as_count, as_truth, as_words
from echolearn.modelfile.history import HISTORY_TENSORS
from echolearn.modelfile.json_values import from_json
from echolearn.modelfile.layout import DTYPES, MODEL, Entry, Facts
from echolearn.readout.summary import MOMENTS_PER_UNIT
from echolearn.sequences.selection import pooled_parts

FORMAT = MODEL
ANY = tuple(DTYPES)
# Every array there may be: its dtypes, and its shape. A letter means one length in the whole file; M: rows of U.
TENSORS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "W": (("F64",), ("n_in", "N")),
    "W_rec.data": (("F64",), ("connections",)),
    "W_rec.indices": (("I64",), ("connections",)),
    "W_rec.indptr": (("I64",), ("N + 1",)),
    "leak": (("F64",), ("N",)),
    "bias": (("F64",), ("N",)),
    "W_fb": (("F64",), ("N", "n_out")),
    "initial_state": (("F64",), ("N",)),
    "backward": (("BOOL",), ("N",)),
    "delays": (("I64",), ("delays",)),
    "thresholds": (("F64",), ("thresholds", "N")),
    "U": (("F64",), ("M", "n_out")),
    "G": (("F64",), ("M", "M")),
    "Q": (("F64",), ("M", "n_out")),
    "classes": (ANY, ("n_out",)),
    "input_mean": (("F64",), ("n_features",)),
    "input_scale": (("F64",), ("n_features",)),
    "input_fill": (("F64",), ("n_features",)),
    "input_flagged": (("BOOL",), ("n_features",)),
    "end_state": (("F64",), ("N",)),
    "end_fed_back": (("F64",), ("n_out",)),
    "end_known": (("F64",), ("n_features",)),
    "opening": (("F64",), ("opening", "n_features")),
    "label_slopes": (("F64",), ("n_out",)),
    "target_mean": (("F64",), ("n_out",)),
    "target_scale": (("F64",), ("n_out",)),
    "topology": (ANY, ("hidden_units", "hidden_units")),
    "topology.data": (ANY, ("links",)),
    "topology.indices": (("I64",), ("links",)),
    "topology.indptr": (("I64",), ("hidden_units + 1",)),
    "reservoir.W": (("F64",), ("n_in", "N")),
    "reservoir.W_rec": (("F64",), ("connections",)),
    "reservoir.leak": (("F64",), ("N",)),
    "reservoir.bias": (("F64",), ("N",)),
    "reservoir.W_fb": (("F64",), ("N", "n_out")),
    "exogenous_mean": (("F64",), ("inputs",)),
    "exogenous_scale": (("F64",), ("inputs",)),
    "last_state": (("F32", "F64"), ("series", "N")),
    "last_value": (("F64",), ("series", "n_out")),
    "residuals": (("F64",), ("residuals", "n_out")),
    "direct.D": (("F64",), ("M", "outputs")),
    "direct.errors": (("F64",), ("origins", "outputs")),
    "direct.members": (("F64",), ("members", "thirteen")),
    "direct.seasonal": (("F64",), ("seasonal",)),
    "direct.counts": (("I64",), ("series columns", "five")),
    "direct.columns": (("F64",), ("series columns", "six")),
    "direct.spread": (("F64",), ("series columns", "horizon")),
    "direct.effects": (("F64",), ("series columns", "inputs")),
    "direct.states": (("F64",), ("series", "N")),
    "direct.inputs": (("F64",), ("series", "n_in")),
    "history": (("F64",), ("epochs", "columns")),
    "history.there": (("BOOL",), ("epochs", "columns")),
}
CORE = {"W", "W_rec.data", "W_rec.indices", "W_rec.indptr", "leak", "U"}
GIVEN = {"reservoir.W", "reservoir.W_rec", "reservoir.leak"}  # a reservoir that the user gave has these,
GIVEN_TOO = {"reservoir.bias", "reservoir.W_fb"}  # and may have these
SPARSE = {"topology.data", "topology.indices", "topology.indptr"}
SUMMARY = {"delays", "thresholds"}  # of a network that sees whole sequences as summaries
INPUTS = {"input_mean", "input_scale", "input_fill", "input_flagged"}
TRAINING_END = {"end_state", "end_known", "opening"}
FORECASTING = ("exogenous_mean", "exogenous_scale", "last_state", "last_value", "residuals")  # only a forecaster has
DIRECT = {name for name in TENSORS if name.startswith("direct.")}  # of a forecaster without closed loop
MOST_LAYERS = 1000
SCALE = "passed_scale"  # of a layer's outputs, for the layer above


def check_layout(entries: Mapping[str, Entry], facts: Facts) -> None:
    """Raise ValueError unless the arrays are those that the settings announce, with their dtypes and shapes."""
    if "layers" in facts:
        _check_stack(entries, facts)
        return
    unknown = sorted(set(entries) - set(TENSORS))
    if unknown:
        raise ValueError(f"it holds arrays that no {FORMAT} file has: {unknown[0]!r:.40}")
    settings = from_json(facts["settings"])
    if not isinstance(settings, dict):
        raise ValueError("the settings are not values by name")
    _check_names(set(entries), settings, facts)
    lengths = _lengths(entries["W"], settings, facts)
    if set(entries) & SUMMARY:
        lengths["n_in"] *= entries["delays"].shape[0]
        lengths["M"] = (MOMENTS_PER_UNIT + entries["thresholds"].shape[0]) * lengths["N"] + 1
    for name, (dtypes, symbols) in TENSORS.items():
        if name not in entries:
            continue
        entry = entries[name]
        if entry.dtype not in dtypes:
            raise ValueError(f"{name} holds {entry.dtype}; expected {' or '.join(dtypes)}")
        shape = tuple(lengths.setdefault(s, n) for s, n in zip(symbols, entry.shape, strict=False))
        if shape != entry.shape or len(symbols) != len(entry.shape):
            raise ValueError(f"{name} has shape {entry.shape}; expected ({', '.join(symbols)}), here {shape}")


def _lengths(W: Entry, settings: Facts, facts: Facts) -> dict[str, int]:
    """Return the lengths that settings and facts announce, by their letters in `TENSORS`."""
    check_each({name: settings[name] for name in ("hidden_units", "direct")})
    units, n_in, N = settings["hidden_units"], as_count(facts["features"]), W.shape[-1]
    parts = pooled_parts(None if as_truth(facts["per_step"]) else settings.get("pooling"))
    lengths = {
        "thirteen": 13,
        "six": 6,
        "five": 5,
        "hidden_units": units,
        "hidden_units + 1": units + 1,
        "N": N,
        "N + 1": N + 1,
        "n_in": n_in,
    }
    lengths["M"] = parts * (N + settings["direct"] * n_in) + 1
    for names, letter in (("class_names", "n_out"), ("history_columns", "columns")):
        if names in facts:
            lengths[letter] = len(as_words(facts[names]))
    return lengths


def _check_names(names: set[str], settings: Facts, facts: Facts) -> None:
    """Raise ValueError unless there are the arrays that this estimator must have, and none that it may not have."""
    kind = facts["estimator"]
    must, may = set(CORE), {"bias", "initial_state"}
    for several in (INPUTS, TRAINING_END):
        must |= several if several & names else set()
    if "end_state" in names and settings.get("feedback"):
        must |= {"end_fed_back"}
    if kind == "ESNClassifier":
        must |= set() if "class_names" in facts else {"classes"}
        may |= {"label_slopes"}
    else:
        must |= {"target_mean", "target_scale"}
    if kind == "ESNForecaster":
        must |= set(FORECASTING) | (DIRECT if "direct" in facts else set())
    if settings.get("feedback"):
        must |= {"W_fb"}
    if settings.get("bidirectional"):
        must |= {"backward"}
    if settings.get("reservoir") is not None:
        must |= GIVEN | ({"W_fb"} if "reservoir.W_fb" in names else set())
        may |= GIVEN_TOO | {"backward"}
    if SUMMARY & names:
        must, may = must | SUMMARY, may | {"backward"}
    if settings.get("topology", "") is None:
        must |= SPARSE if SPARSE & names else {"topology"}
    if "tt" in facts:
        must |= {"G", "Q"}
    if "history_columns" in facts:
        must |= {"history", "history.there"}
    if not must <= names <= must | may:
        lacking, odd = sorted(must - names), sorted(names - must - may)
        raise ValueError(f"{kind!r:.40} lacks the arrays {lacking}" if lacking else f"{kind!r:.40} has no arrays {odd}")


def _check_stack(entries: Mapping[str, Entry], facts: Facts) -> None:
    """Raise ValueError unless every layer is complete and the arrays between layers fit."""
    layers = facts["layers"]
    if not isinstance(layers, list) or not 2 <= len(layers) <= MOST_LAYERS:
        raise ValueError(f"{layers!r:.40} are not layers")
    columns = facts["history_columns"]
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ValueError(f"{columns!r:.40} are not the names of columns")
    numbers, there = (entries[name] for name in HISTORY_TENSORS)
    kinds, shape = (numbers.dtype, there.dtype), numbers.shape
    if kinds != ("F64", "BOOL") or shape != there.shape or shape[1:] != (len(columns),):
        raise ValueError("the history does not fit its columns")
    left = set(entries) - set(HISTORY_TENSORS)
    for number, known in enumerate(layers):
        if not isinstance(known, dict) or "layers" in known:
            raise ValueError(f"layer {number} is not one")
        own = {name.partition("/")[2]: name for name in left if name.partition("/")[0] == str(number)}
        left -= set(own.values())
        of_layer = {short: entries[name] for short, name in own.items()}
        scale = of_layer.pop(SCALE, None)
        check_layout(of_layer, known)
        wanted = None if number == len(layers) - 1 else ("F64", of_layer["U"].shape[1:])
        if (None if scale is None else (scale.dtype, scale.shape)) != wanted:
            raise ValueError(f"the scale of layer {number} is not what the layer above needs")
    if left:
        raise ValueError(f"it holds arrays of no layer: {min(left)!r:.40}")
