"""The one description of a model file: its arrays with their dtypes and shapes, and which of them a model must have.

docs/reference/model_file.md explains the arrays. `persistence` writes and reads them, `runtime` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from echolearn.modelfile.layout import DTYPES, MODEL, Entry, Facts
from echolearn.modelfile.values import HISTORY_TENSORS, as_count, as_words, from_json
from echolearn.validation import BOOLEAN, Array, check_each, whole_number

FORECASTER = "ESNForecaster"
CLASSIFIERS = ("ESNClassifier", "SeriesClassifier", "DeepESNClassifier")
SERIES, DEEP = ("SeriesClassifier", "SeriesRegressor"), ("DeepESNClassifier", "DeepESNRegressor")
NETWORKS = ("ESNClassifier", "ESNRegressor", FORECASTER, *SERIES, *DEEP)
TIME_AXES = ("time_first", "channels_first", "rows")  # which axis of X is time
MAX_LOGIT = 16.0  # of a leak of a deep network: beyond, 1 - a would vanish in float32
RMS_EPSILON = 1e-5  # added to mean squares before their root, in the normalisation of a deep network
MOMENTS_PER_UNIT = 5  # statistics of a unit in a summary beside the shares above its thresholds
THRESHOLD_WIDTH = (
    1e-3  # of states about a threshold that count in part, so that rounding moves no share by a whole step
)
MAX_LAGS = 51  # of autoregressions: two days of hours and more, one lag of it for changes
TAPS_PER_UNIT = 9  # delayed inputs of a detector of changes, equally far apart
SETS_OF_UNITS = ("levels", "changes", "levels of differences", "changes of differences")  # of a network of whole series
MAX_LAYERS, MAX_STACKS, MAX_STEPS = 1000, 1000, 100  # of a deep network, of an ensemble, of a pipeline
NETWORK = "model"  # the owner of a network's arrays in the file of a pipeline; those of the steps have their number
GIVEN_RESERVOIR = "reservoir."  # the prefix of a reservoir that the user gave
DIRECT_FORECAST = "direct."  # the prefix of forecasts without closed loop

ANY_DTYPE = tuple(DTYPES)


@dataclass(frozen=True)
class Tensor:
    """An array of a file. shape: its lengths, each a letter that means one length in the whole file; M: rows of U.
    gaps: whether NaN stands for what is not known."""

    shape: tuple[str, ...]
    dtypes: tuple[str, ...] = ("F64",)
    gaps: bool = False


TENSORS: dict[str, Tensor] = {
    "W": Tensor(("n_in", "N")),
    "W_rec.data": Tensor(("connections",)),
    "W_rec.indices": Tensor(("connections",), ("I64",)),
    "W_rec.indptr": Tensor(("N + 1",), ("I64",)),
    "leak": Tensor(("N",)),
    "bias": Tensor(("N",)),
    "W_fb": Tensor(("N", "n_out")),
    "initial_state": Tensor(("N",)),
    "backward": Tensor(("N",), ("BOOL",)),
    "delays": Tensor(("delays",), ("I64",)),
    "thresholds": Tensor(("thresholds", "N")),
    "shares": Tensor(("four",)),
    "U": Tensor(("M", "n_out")),
    "G": Tensor(("M", "M")),
    "Q": Tensor(("M", "n_out")),
    "classes": Tensor(("n_out",), ANY_DTYPE),
    "input_mean": Tensor(("n_features",)),
    "input_scale": Tensor(("n_features",)),
    "input_fill": Tensor(("n_features",)),
    "input_flagged": Tensor(("n_features",), ("BOOL",)),
    "end_state": Tensor(("N",)),
    "end_fed_back": Tensor(("n_out",)),
    "end_known": Tensor(("n_features",), gaps=True),
    "opening": Tensor(("opening", "n_features"), gaps=True),
    "label_slopes": Tensor(("n_out",)),
    "target_mean": Tensor(("values",)),
    "target_scale": Tensor(("values",)),
    "topology": Tensor(("hidden_units", "hidden_units"), ANY_DTYPE),
    "topology.data": Tensor(("links",), ANY_DTYPE),
    "topology.indices": Tensor(("links",), ("I64",)),
    "topology.indptr": Tensor(("hidden_units + 1",), ("I64",)),
    "reservoir.W": Tensor(("n_in", "N")),
    "reservoir.W_rec": Tensor(("connections",)),
    "reservoir.leak": Tensor(("N",)),
    "reservoir.bias": Tensor(("N",)),
    "reservoir.W_fb": Tensor(("N", "n_out")),
    "exogenous_mean": Tensor(("inputs",)),
    "exogenous_scale": Tensor(("inputs",)),
    "last_state": Tensor(("states", "N"), ("F32", "F64")),
    "last_value": Tensor(("series", "values"), gaps=True),
    "residuals": Tensor(("residuals", "values")),
    "direct.D": Tensor(("M", "outputs")),
    "direct.errors": Tensor(("errors",), gaps=True),
    "direct.members": Tensor(("members", "thirteen and lags")),
    "direct.seasonal": Tensor(("seasonal",)),
    "direct.counts": Tensor(("series columns", "seven"), ("I64",)),
    "direct.columns": Tensor(("series columns", "six")),
    "direct.spread": Tensor(("outputs",)),
    "direct.sizes": Tensor(("series", "two"), ("I64",)),
    "direct.models": Tensor(("series", "two")),
    "direct.scale": Tensor(("series", "n_out")),
    "direct.effects": Tensor(("series columns", "inputs")),
    "direct.states": Tensor(("series", "N")),
    "direct.inputs": Tensor(("series", "n_in")),
    "history": Tensor(("epochs", "columns"), gaps=True),
    "history.there": Tensor(("epochs", "columns"), ("BOOL",)),
}
# Arrays of a deep network: of stack k as "k/name", of its layer l from 1 on as "k/l/name".
FLOAT_DTYPES = ("F32", "F64")
STACK_TENSORS = {"W_0": ("n_in", "C"), "b_0": ("C",), "c": ("C",)}
LAYER_TENSORS = {
    "W_in": ("C", "C"),
    "alpha": ("pairs",),
    "theta": ("pairs",),
    "b": ("C",),
    "W_out": ("C", "C"),
    "b_out": ("C",),
}
FIXED_LENGTHS = {"two": 2, "four": len(SETS_OF_UNITS), "six": 6, "seven": 7, "thirteen and lags": 13 + 2 * MAX_LAGS}


def named(*prefixes: str) -> frozenset[str]:
    """Return the names of the arrays that begin so."""
    return frozenset(name for name in TENSORS if name.startswith(prefixes))


ALWAYS = frozenset({"W", "W_rec.data", "W_rec.indices", "W_rec.indptr", "leak", "U"})
INPUTS = named("input_")
TRAINING_END = frozenset({"end_state", "end_known", "opening"})
TARGETS = frozenset({"target_mean", "target_scale"})
SUMMARY = frozenset({"delays", "thresholds", "shares"})  # of a network that sees whole sequences as summaries
SPARSE_TOPOLOGY = named("topology.")
FORECAST = frozenset({"exogenous_mean", "exogenous_scale", "last_state", "last_value", "residuals"})

# raises ValueError unless the arrays of a transformer are those that its facts announce
CheckStep = Callable[[Mapping[str, Entry], Facts], None]


def arrays_of(owner: str, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays "owner/name" of one layer or step by their names."""
    prefix = f"{owner}/"
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def spacings(steps: int) -> Array:
    """Return the distances between taps for sequences of so many steps: 1, 2, 4, ... up to an eighth of them."""
    return 2 ** np.arange(1 + int(np.log2(max(1.0, (steps - 1) / (TAPS_PER_UNIT - 1)))))


def tap_delays(steps: int) -> Array:
    """Return all delays, in ascending order, that detectors of changes read in sequences of so many steps."""
    return np.unique(np.outer(spacings(steps), np.arange(TAPS_PER_UNIT)))


def check_delays(delays: Array) -> None:
    """Raise ValueError unless these are the delays for sequences of some length."""
    if not len(delays) or not np.array_equal(delays, tap_delays(int(delays[-1]) + 1)):
        raise ValueError("the delays are not those of taps 1, 2, 4, ... steps apart")


def layout_of(facts: Mapping[str, object]) -> str:
    """Return which axis of X is time; files of earlier versions know only time first."""
    layout = facts.get("layout", "time_first")
    if layout not in TIME_AXES:
        raise ValueError(f"{layout!r:.40} is not a layout")
    return str(layout)


def check_contents(entries: Mapping[str, Entry], facts: Facts, check_step: CheckStep | None = None) -> None:
    """Raise ValueError unless the arrays are those of a network or a pipeline with these facts."""
    if "steps" in facts:
        _check_pipeline(entries, facts, check_step)
    else:
        _check_network(entries, facts)


def _check_network(entries: Mapping[str, Entry], facts: Facts) -> None:
    """Raise ValueError unless the arrays are those that the settings announce, with their dtypes and shapes."""
    settings = from_json(facts["settings"])
    if not isinstance(settings, dict):
        raise ValueError("the settings are not values by name")
    deep, lengths = facts["estimator"] in DEEP, _known_lengths(facts)
    if deep:
        entries = _check_deep(entries, settings, facts, lengths)
    unknown = sorted(set(entries) - set(TENSORS))
    if unknown:
        raise ValueError(f"it holds arrays that no {MODEL} file has: {unknown[0]!r:.40}")
    _check_names(set(entries), settings, facts)
    if not deep:
        lengths |= _lengths(entries["W"], settings, facts)
    if set(entries) >= SUMMARY:
        lengths["n_in"] *= 2 * entries["delays"].shape[0]  # the series and its first differences
        lengths["M"] = (MOMENTS_PER_UNIT + entries["thresholds"].shape[0]) * lengths["N"] + 1
    for name, tensor in TENSORS.items():
        if name in entries:
            check_entry(name, entries[name], tensor.shape, tensor.dtypes, lengths)
    blocks, left = divmod(lengths.get("values", lengths["n_out"]), lengths["n_out"])
    states = blocks * lengths["series"] if "series" in lengths else None
    if left or (blocks != 1 and settings.get("neighbourhood") is None) or lengths.get("states") != states:
        raise ValueError("the values and states of the series do not fit the outputs of the network")


def check_entry(
    name: str, entry: Entry, letters: tuple[str, ...], dtypes: tuple[str, ...], lengths: dict[str, int]
) -> None:
    """Raise ValueError unless an array has one of the dtypes and the lengths of its letters; new letters are added."""
    if entry.dtype not in dtypes:
        raise ValueError(f"{name} holds {entry.dtype}; expected {' or '.join(dtypes)}")
    shape = tuple(lengths.setdefault(s, n) for s, n in zip(letters, entry.shape, strict=False))
    if shape != entry.shape or len(letters) != len(entry.shape):
        raise ValueError(f"{name} has shape {entry.shape}; expected ({', '.join(letters)}), here {shape}")


def _known_lengths(facts: Facts) -> dict[str, int]:
    """Return the lengths that facts announce, by their letters in `TENSORS`."""
    lengths = dict(FIXED_LENGTHS)
    for names, letter in (("class_names", "n_out"), ("history_columns", "columns")):
        if names in facts:
            lengths[letter] = len(as_words(facts[names]))
    return lengths


def _lengths(W: Entry, settings: Facts, facts: Facts) -> dict[str, int]:
    """Return the lengths that the settings of a network of one layer announce."""
    N, units = W.shape[-1], settings["hidden_units"]
    if units == "auto" and facts["estimator"] in SERIES:
        units = N // len(SETS_OF_UNITS)
    announced = {"hidden_units": units, "direct": settings.get("direct", False)}
    check_each(announced, {"hidden_units": whole_number(1), "direct": BOOLEAN})
    n_in = as_count(facts["features"])
    return {
        "hidden_units": units,
        "hidden_units + 1": units + 1,
        "N": N,
        "N + 1": N + 1,
        "n_in": n_in,
        "M": N + announced["direct"] * n_in + 1,
    }


def _check_deep(
    entries: Mapping[str, Entry], settings: Facts, facts: Facts, lengths: dict[str, int]
) -> dict[str, Entry]:
    """Raise ValueError unless every stack of a deep network is complete; return the other arrays, and add lengths."""
    units, layers, stacks = settings["units"], settings["layers"], as_count(facts["stacks"])
    check_each({"units": units, "layers": layers}, {"units": whole_number(2), "layers": whole_number(1)})
    if units % 2 or layers > MAX_LAYERS or stacks > MAX_STACKS:
        raise ValueError(f"{stacks} stacks of {layers} layers of {units} units are no deep network")
    lengths |= {"n_in": as_count(facts["features"]), "C": units, "pairs": units // 2}
    lengths |= {"N": stacks * layers * units, "M": stacks * units + 1}
    left = dict(entries)
    for stack in range(stacks):
        wanted = {f"{stack}/{name}": shape for name, shape in STACK_TENSORS.items()}
        for layer in range(1, layers + 1):
            wanted |= {f"{stack}/{layer}/{name}": shape for name, shape in LAYER_TENSORS.items()}
        for name, shape in wanted.items():
            if name not in left:
                raise ValueError(f"it lacks the array {name}")
            check_entry(name, left.pop(name), shape, FLOAT_DTYPES, lengths)
    return left


def _check_names(names: set[str], settings: Facts, facts: Facts) -> None:
    """Raise ValueError unless there are the arrays that this estimator must have, and none that it may not have."""
    kind = facts["estimator"]
    deep = kind in DEEP
    must, may = ({"U"}, set()) if deep else (set(ALWAYS), {"bias", "initial_state"})
    for several in (INPUTS, TRAINING_END):
        must |= several if several & names else set()
    if "end_state" in names and settings.get("feedback"):
        must |= {"end_fed_back"}
    if kind in CLASSIFIERS:
        must |= set() if "class_names" in facts else {"classes"}
        may |= {"label_slopes"}
    else:
        must |= TARGETS
    if kind == FORECASTER:
        must |= FORECAST | (named(DIRECT_FORECAST) if "direct" in facts else set())
    if settings.get("feedback"):
        must |= {"W_fb"}
    if settings.get("bidirectional") and not deep:
        must |= {"backward"}
    if settings.get("reservoir") is not None:
        must |= {"reservoir.W", "reservoir.W_rec", "reservoir.leak"}
        must |= {"W_fb"} if "reservoir.W_fb" in names else set()
        may |= {"reservoir.bias", "reservoir.W_fb", "backward"}
    if kind in SERIES:
        must |= SUMMARY
    if settings.get("topology", "") is None:
        must |= SPARSE_TOPOLOGY if SPARSE_TOPOLOGY & names else {"topology"}
    if "tt" in facts:
        must |= {"G", "Q"}
    if "history_columns" in facts:
        must |= set(HISTORY_TENSORS)
    if not must <= names <= must | may:
        lacking, odd = sorted(must - names), sorted(names - must - may)
        raise ValueError(f"{kind!r:.40} lacks the arrays {lacking}" if lacking else f"{kind!r:.40} has no arrays {odd}")


def _by_owner(entries: Mapping[str, Entry], owners: Iterable[str]) -> tuple[dict[str, dict[str, Entry]], list[str]]:
    """Return the arrays "owner/name" of each owner by their names, and the names of those that have none of them."""
    grouped: dict[str, dict[str, Entry]] = {owner: {} for owner in owners}
    left = []
    for name, entry in entries.items():
        owner, _, array = name.partition("/")
        if owner in grouped:
            grouped[owner][array] = entry
        else:
            left.append(name)
    return grouped, left


def _check_pipeline(entries: Mapping[str, Entry], facts: Facts, check_step: CheckStep | None) -> None:
    """Raise ValueError unless every array belongs to a step or to the network, and the network is complete."""
    steps = facts["steps"]
    if not isinstance(steps, list) or len(steps) > MAX_STEPS or not all(isinstance(step, dict) for step in steps):
        raise ValueError(f"{steps!r:.40} are not the steps of a pipeline")
    network = facts[NETWORK]
    if not isinstance(network, dict) or "steps" in network or facts["estimator"] != "Pipeline":
        raise ValueError("a pipeline without a network, or steps of something else")
    grouped, left = _by_owner(entries, [*map(str, range(len(steps))), NETWORK])
    if left:
        raise ValueError(f"it holds arrays of no step: {left[0]!r:.40}")
    for number, step in enumerate(steps):
        if check_step is not None:
            check_step(grouped[str(number)], step)
    check_contents(grouped[NETWORK], network)
