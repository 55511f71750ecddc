"""Exports beside the models themselves: random networks over all options, in onnxruntime, C, NumPy and a browser.

    python -m reliability.exports [networks] [seed] [deep]

Every network is fitted to small random sequences, exported to every format that takes it, and asked the same frames.
The relative difference is the largest one over the largest answer. A refusal must name the estimator or an option.
With "deep", all networks are deep, and the figures are not kept. Pages run in Node where there is no Chromium.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from echolearn import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    FrameWise,
    SeriesClassifier,
    SeriesRegressor,
    save,
)
from echolearn.exceptions import ExportError
from echolearn.export import plan_of
from echolearn.export.c.header import c_header
from echolearn.export.onnx.graph import onnx_model
from echolearn.export.page.document import PageModel
from echolearn.fitting.parameters import grouped_settings
from echolearn.runtime import Model, load
from echolearn.runtime._plan import Plan
from reliability.browser import in_page, in_page_steps, page_tab, put_page
from reliability.results import keep, show

ALLOWED = 1e-5
FORECAST = 5  # steps of a closed loop
FLAGS = ["-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-pedantic", "-Werror"]
SANITIZED = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
DEEP_KINDS = (
    *("deep labels", "deep values", "deep label sets"),
    *("deep labels per series", "deep values per series", "deep label sets per series"),
)
KINDS = (
    *("labels", "values", "label sets", "series labels", "series values", "series label sets", "forecast"),
    *("pipeline", *DEEP_KINDS),
)
FORMATS = ("ONNX", "ONNX, step by step", "C", "NumPy", "NumPy, step by step", "NumPy, streams side by side")
IN_BROWSER = ("browser", "browser, step by step")


@dataclass(frozen=True, eq=False)
class Drawn:
    """A fitted model, frames (steps, features) in float32, and its own answers to them (rows, outputs)."""

    kind: str
    settings: dict[str, Any]
    model: Any
    plan: Plan
    x: np.ndarray
    expected: np.ndarray


def draw(rng: np.random.Generator, kinds: tuple[str, ...] = KINDS) -> Drawn:
    """Return a random fitted model of a random kind."""
    kind = str(rng.choice(kinds))
    features, outputs = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    X = [rng.normal(rng.normal(size=features) * 10, 1, (rng.integers(15, 40), features)) for _ in range(8)]
    settings = _deep_settings(rng, kind) if kind in DEEP_KINDS else _settings(rng, kind)
    if settings.get("missing", "error") != "error":
        X = [np.where(rng.random(x.shape) < 0.2, np.nan, x) for x in X]
    y = _targets(rng, kind, X, outputs)
    model = _model(rng, kind, settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "forecast":
            walks = [np.cumsum(x, axis=0) for x in X]
            X = [(walk - walk.mean(axis=0)) / walk.std(axis=0) for walk in walks]  # a closed loop has one scale
            model.fit(X)
        else:
            model.fit(X, y)
        x = X[0].astype(np.float32)
        return Drawn(kind, settings, model, plan_of(model), x, _expected(model, x.astype(np.float64), kind))


def _settings(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    """Return random settings that estimators of this kind take."""

    def some(*values: object) -> Any:
        return values[rng.integers(len(values))]

    units = int(rng.integers(5, 40))
    settings: dict[str, Any] = {"hidden_units": units, "random_state": int(rng.integers(1000))}
    missing = {"standardize": some(True, False), "missing": some("error", "error", "carry", "mean")}
    if kind.startswith("series"):
        settings |= {"dtype": some("float32", "float64"), "washout": some(0, 3), "ridge": some("auto", 1.0), **missing}
        return settings | ({} if kind == "series values" else {"readout": some("softmax", "ridge")})
    settings |= {
        "learn": "none",
        "activation": some("tanh", "tanh", "sigmoid", "relu", "identity"),
        "leak": some(1.0, 0.3, (0.1, 1.0)),
        "spectral_radius": some(0.5, 0.9),
        "connections": some(1, 3, 5),
        "direct": some(True, False),
        "bias_scaling": some(0.0, 0.3),
        "washout": some(0, 4),
        "initial_state": some(None, rng.normal(size=units) / 3),
        "dtype": some("float32", "float64"),
        "ridge": some(0.01, 1.0),
    }
    if kind == "forecast":
        return settings
    settings |= missing
    settings |= {"topology": some("random", "ring", "orthogonal"), "bidirectional": some(False, False, True)}
    if not settings["bidirectional"]:
        settings["feedback"] = some(False, False, True)
    if kind in ("labels", "pipeline"):
        settings |= {"readout": some("softmax", "ridge"), "ensemble": some(1, 1, 2)}
        if settings["initial_state"] is not None or settings.get("feedback"):
            settings["ensemble"] = 1
    if kind == "pipeline":
        settings["missing"] = "error"
    return settings


def _deep_settings(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    """Return random settings of deep networks."""

    def some(*values: object) -> Any:
        return values[rng.integers(len(values))]

    settings = {
        "units": 2 * int(rng.integers(2, 17)),
        "layers": int(rng.integers(1, 6)),
        "ensemble": int(rng.integers(1, 4)),
        "bidirectional": some(False, False, True),
        "leak": some((0.03, 0.63), (0.0003, 0.01)),
        "standardize": some(True, False),
        "missing": some("error", "carry", "mean"),
        "dtype": some("float32", "float64"),
        "ridge": some(0.1, 1.0),  # "auto" may leave a readout so ill-conditioned that float32 shows
        "epochs": 2,
        "random_state": int(rng.integers(1000)),
    }
    return settings if "values" in kind else settings | {"readout": some("softmax", "ridge")}


def _targets(rng: np.random.Generator, kind: str, X: list[np.ndarray], outputs: int) -> Any:
    """Return random targets that depend a little on the inputs."""
    names = np.array([f"class {k}" for k in range(outputs)])
    if kind in ("series labels", "deep labels per series"):
        return names[np.arange(len(X)) % outputs]
    if kind in ("series values", "deep values per series"):
        return rng.normal(size=(len(X), outputs))
    if kind in ("series label sets", "deep label sets per series"):
        return (np.arange(len(X))[:, None] + np.arange(outputs)) % 3 > 0
    if kind in ("label sets", "deep label sets"):
        return [rng.integers(0, 2, (len(x), outputs)) for x in X]
    if "values" in kind:
        return [7 + 3 * np.roll(np.nan_to_num(x[:, :1]), 1) + rng.normal(size=(len(x), outputs)) for x in X]
    return [names[rng.integers(0, outputs, len(x))] for x in X]


def _model(rng: np.random.Generator, kind: str, settings: dict[str, Any]) -> Any:
    """Return an estimator that is not fitted."""
    if kind == "forecast":
        settings = {name: value for name, value in settings.items() if name not in ("direct", "dtype")}
        # direct ones are refused
        return ESNForecaster(**grouped_settings(settings, ESNForecaster), method="closed_loop")
    of_values = "values" in kind
    if kind.startswith("series"):
        return (SeriesRegressor if of_values else SeriesClassifier)(**settings)
    if kind in DEEP_KINDS:
        return (DeepESNRegressor if of_values else DeepESNClassifier)(**settings)
    kind_of_network = ESNRegressor if of_values else ESNClassifier
    network = kind_of_network(**grouped_settings(settings, kind_of_network))
    if kind == "pipeline":
        steps = [StandardScaler(), RobustScaler(), MinMaxScaler(clip=True), PCA(whiten=bool(rng.integers(2)))]
        return make_pipeline(*(FrameWise(steps[i]) for i in rng.permutation(4)[:2]), network)
    return network


def _expected(model: Any, x: np.ndarray, kind: str) -> np.ndarray:
    """Return the model's own answers, from its first state on."""
    if kind == "forecast":
        answers = model.predict(FORECAST, warm_up=x)
    else:
        answers = (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(x)
    return np.atleast_2d(np.asarray(answers, np.float64).reshape(-1, plan_of(model).answer.n_out))


def difference(drawn: Drawn, found: np.ndarray) -> float:
    """Return the largest difference over the largest answer."""
    assert found.shape == drawn.expected.shape, (found.shape, drawn.expected.shape)
    return float(np.abs(found - drawn.expected).max() / np.abs(drawn.expected).max())


def session(content: bytes) -> Any:
    """Return an onnxruntime session of a checked model."""
    import onnx
    import onnxruntime

    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def in_onnx(drawn: Drawn) -> np.ndarray:
    """Return the answers of the sequence graph."""
    more = {} if drawn.plan.series_dims is None else {"steps": np.array(FORECAST)}
    return np.asarray(session(onnx_model(drawn.plan)).run(None, {"X": drawn.x, **more})[0])


def in_onnx_steps(drawn: Drawn) -> np.ndarray:
    """Return the answers of the step graph, frame after frame; a forecast is fed back by hand."""
    running = session(onnx_model(drawn.plan, step=True))
    kind = running.get_inputs()[1].type
    state = np.array(
        json.loads(running.get_modelmeta().custom_metadata_map["initial_state"]),
        np.float64 if "double" in kind else np.float32,
    )
    answers, frames = [], list(drawn.x)
    for t in range(len(frames) + (FORECAST - 1 if drawn.plan.series_dims else 0)):
        x = frames[t] if t < len(frames) else answers[-1]
        answer, state = running.run(None, {"x": x, "state": state})
        answers.append(answer)
    return np.array(answers[-len(drawn.expected) :])


def compiled(headers: dict[str, str], source: str, folder: Path, *flags: str, compiler: str = "gcc") -> Path:
    """Return a program of this source, compiled beside the headers with all warnings as errors."""
    for name, text in headers.items():
        (folder / f"{name}.h").write_text(text)
    language, ending = ("c++11", "cc") if compiler.endswith("++") else ("c99", "c")
    file = folder / f"program.{ending}"
    file.write_text(source)
    program = folder / "program"
    command = [compiler, f"-std={language}", *FLAGS, *flags, str(file), "-o", str(program), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[:4000])
    return program


MODEL = """
static void run_NAME(int frames, int more)
{
    static float x[NAME_inputs], out[NAME_outputs];
    NAME_state state;
    int t;
    fprintf(stderr, "%u\\n", (unsigned)sizeof state);
    NAME_reset(&state);
    for (t = 0; t < frames; t++) {
        if (fread(x, sizeof(float), NAME_inputs, stdin) != NAME_inputs)
            return;
        NAME_step(&state, x, out);
        fwrite(out, sizeof(float), NAME_outputs, stdout);
    }
    for (t = 0; t < more; t++) {
        NEXT
        fwrite(out, sizeof(float), NAME_outputs, stdout);
    }
}
"""


def in_c(some: list[Drawn], numbers: str | None = None, *flags: str, compiler: str = "gcc") -> list[np.ndarray]:
    """Return the answers of each model as C; all are compiled into one program."""
    headers = {f"m{i}": c_header(drawn.plan, name=f"m{i}", numbers=numbers) for i, drawn in enumerate(some)}
    source = "#include <stdio.h>\n" + "".join(f'#include "{name}.h"\n' for name in headers)
    calls, frames = [], b""
    for name, drawn in zip(headers, some, strict=True):
        more = 0 if drawn.plan.series_dims is None else FORECAST - 1
        step = f"{name}_next(&state, out);" if more else ""
        source += MODEL.replace("NEXT", step).replace("NAME", name)
        calls.append(f"    run_{name}({len(drawn.x)}, {more});")
        frames += drawn.x.tobytes()
    source += "int main(void)\n{\n" + "\n".join(calls) + "\n    return 0;\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(headers, source, Path(folder), *(flags or SANITIZED), compiler=compiler)
        done = subprocess.run([str(program)], input=frames, capture_output=True, check=True)
    said = [int(re.search(r"_state: (\d+) bytes", header)[1]) for header in headers.values()]  # type: ignore[index]
    assert list(map(int, done.stderr.split())) == said, "the size of a state is not the one that the header says"
    answers, found = np.frombuffer(done.stdout, np.float32), []
    for drawn in some:
        rows = len(drawn.x) + (0 if drawn.plan.series_dims is None else FORECAST - 1)
        own, answers = np.split(answers, [rows * drawn.plan.answer.n_out])
        found.append(own.reshape(rows, -1)[-len(drawn.expected) :])
    return found


def in_numpy(drawn: Drawn) -> np.ndarray:
    """Return the answers of the saved model in `echolearn.runtime`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save(drawn.model, path)
        model = load(path)
    x = drawn.x.astype(np.float64)
    if drawn.plan.series_dims is not None:
        return np.asarray(model.forecast(FORECAST, x)).reshape(FORECAST, -1)
    answers = model.predict(x) if drawn.plan.answer.kind == "values" else model.predict_proba(x)
    return np.asarray(answers).reshape(-1, drawn.plan.answer.n_out)


def in_numpy_steps(drawn: Drawn) -> np.ndarray:
    """Return the answers of a stream in `echolearn.runtime`; a forecast is fed back by hand."""
    stream, answers = Model(drawn.plan).stream(warm_up="cold"), []
    for t in range(len(drawn.x) + (FORECAST - 1 if drawn.plan.series_dims else 0)):
        answers.append(stream.step(drawn.x[t] if t < len(drawn.x) else answers[-1]))
    return np.array(answers[-len(drawn.expected) :])


def in_numpy_side_by_side(drawn: Drawn) -> np.ndarray:
    """Return the answers of the second of three devices; the others see other frames."""
    running, answers = Model(drawn.plan).streams(3), []
    for t in range(len(drawn.x) + (FORECAST - 1 if drawn.plan.series_dims else 0)):
        x = drawn.x[t] if t < len(drawn.x) else answers[-1]
        answers.append(running.step(np.stack([0.9 * x, x, 1.1 * x]))[1])
    return np.array(answers[-len(drawn.expected) :])


def may_run_forward(drawn: Drawn) -> bool:
    """Return whether an export frame by frame is to be expected, by the settings alone."""
    backward = drawn.settings.get("bidirectional") and drawn.settings.get("units", 4) >= 4  # half of two pairs or more
    return not backward and "per series" not in drawn.kind


def _check_refusal(drawn: Drawn, refusal: Exception) -> None:
    """Raise the refusal again if it was not to be expected, or does not name its cause."""
    if may_run_forward(drawn) or not re.search(r"bidirectional=True|Deep\w+ .*whole series", str(refusal)):
        raise refusal


def compare(
    networks: int, seed: int, tab: Any = None, kinds: tuple[str, ...] = KINDS
) -> tuple[dict[str, dict[str, float]], Counter[str]]:
    """Return, for every format, counts and the largest difference; and how often each kind was drawn.

    tab: of a browser in which the page of some model is open; None: without a browser.
    """
    rng = np.random.default_rng(seed)
    drawn = [draw(rng, kinds) for _ in range(networks)]
    names = FORMATS if tab is None else FORMATS + IN_BROWSER
    rows = {name: {"networks": 0, "refused": 0, "beyond 1e-5": 0, "largest": 0.0} for name in names}

    def count(name: str, one: Drawn, found: np.ndarray) -> None:
        far, row = difference(one, found), rows[name]
        row["networks"] += 1
        row["largest"] = max(row["largest"], far)
        if not far <= ALLOWED:
            row["beyond 1e-5"] += 1
            print(f"{name}: {far:.2g} for {one.kind}, {one.settings}", file=sys.stderr)

    forward = []
    for one in drawn:
        count("ONNX", one, in_onnx(one))
        count("NumPy", one, in_numpy(one))
        for name, answers in (("step by step", in_numpy_steps), ("streams side by side", in_numpy_side_by_side)):
            try:
                count(f"NumPy, {name}", one, answers(one))
            except ValueError as refusal:
                _check_refusal(one, refusal)
                rows[f"NumPy, {name}"]["refused"] += 1
        try:
            count("ONNX, step by step", one, in_onnx_steps(one))
            forward.append(one)
        except ExportError as refusal:
            _check_refusal(one, refusal)
            rows["ONNX, step by step"]["refused"] += 1
            rows["C"]["refused"] += 1
    for one in drawn if tab is not None else ():
        frames = one.x.astype(np.float64)
        count("browser", one, in_page(tab, one.plan, frames, FORECAST if one.plan.series_dims else None))
        if one in forward and one.plan.per_step and not one.plan.series_dims:
            count("browser, step by step", one, in_page_steps(tab, one.plan, frames)[-len(one.expected) :])
    for first in range(0, len(forward), 25):
        some = forward[first : first + 25]
        for one, found in zip(some, in_c(some), strict=True):
            count("C", one, found)
    return rows, Counter(one.kind for one in drawn)


def main() -> None:
    """Run the campaign and keep its figures."""
    deep = "deep" in sys.argv[1:]
    given = [int(word) for word in sys.argv[1:] if word != "deep"]
    networks, seed = (*given, *(200, 1)[len(given) :])
    with page_tab() as tab, tempfile.TemporaryDirectory() as folder:
        put_page(tab, [PageModel("first", draw(np.random.default_rng(seed)).plan)], Path(folder))
        rows, counts = compare(networks, seed, tab, DEEP_KINDS if deep else KINDS)
    show(f"{networks} random networks", ("networks", "refused", "beyond 1e-5", "largest"), rows)
    if not deep:
        keep("exports", {"networks": networks, "seed": seed, "formats": rows, "kinds": dict(counts)})


if __name__ == "__main__":
    main()
