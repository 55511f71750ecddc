"""Cases of models that leave the library: headers in C, ONNX graphs, pages, and the runtime that needs NumPy alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from basis import SMALL, Run, arrays_of, case, labels, new, new_X, plain, public, refusal, series
from fits import FITS
from forecasts import LOOP, sales, weather
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import echolearn
from echolearn import FrameWise

NAMES = (
    "classifier",
    "classifier, fixed, ridge",
    "classifier, feedback",
    "classifier, bidirectional",
    "classifier, ensemble",
    "classifier, no intercept",
    "classifier, own reservoir",
    "classifier, float64",
    "classifier, gaps",
    "classifier, label sets",
    "regressor",
    "regressor, one series",
    "regressor, feedback",
    "regressor, deep",
    "deep classifier",
    "deep classifier, ridge",
    "deep regressor",
)
SERIES = ("series, labels", "series, labels, float64", "series, label sets", "series, gaps", "series, values")
NUMBERS = (None, "float32", "float64", "int16", "int8")


# ---------------------------------------------------------------- models


@cache
def model(name: str) -> Any:
    """A fitted model; the cases of this module share it and leave it as it is."""
    return FITS[name].fitted() if name in FITS else OTHERS[name]()


def _loop(**settings: Any) -> Any:
    return new("ESNForecaster", **{**LOOP, "learn": "none", **settings})


def _pipeline(*steps: Any) -> Any:
    how = {**SMALL, "epochs": 1}
    return make_pipeline(*steps, new("ESNClassifier", **how)).fit(*labels())


OTHERS = {
    "forecaster": lambda: _loop().fit(series()[0][:, 0]),
    "forecaster of columns": lambda: _loop().fit(series()[0]),
    "forecaster of several": lambda: _loop().fit(series(3)),
    "forecaster with inputs": lambda: _loop().fit(series()[0], exogenous=weather(400)),
    "direct forecaster": lambda: new("ESNForecaster", hidden_units=20, method="direct").fit(sales()),
    "pipeline": lambda: _pipeline(FrameWise(StandardScaler()), FrameWise(PCA(2))),
    "pipeline of scalers": lambda: _pipeline(*map(FrameWise, (MinMaxScaler(), RobustScaler(), MaxAbsScaler()))),
    "pipeline of filled gaps": lambda: _pipeline(FrameWise(SimpleImputer()), FrameWise(StandardScaler())),
}


# ---------------------------------------------------------------- files


def exported(given: Any, path: Path, **how: Any) -> Any:
    """The files that an export writes, without the version of the package, or the refusal."""

    def written() -> dict[str, Any]:
        return {file.name: contents(file) for file in public("export_model")(given, path, **how)}

    return refusal(written, public("ExportError"))


def contents(file: Path) -> Any:
    if file.suffix == ".onnx":
        return file.read_bytes().replace(echolearn.__version__.encode(), b"VERSION")
    return plain(file.read_text("ascii" if file.suffix == ".h" else "utf-8"))


def headers(name: str, run: Run) -> Iterator[tuple[str, Any]]:
    """Headers in every type of number; the loss is measured for those that compute in integers."""
    frames = np.vstack(new_X)[:40].astype(np.float32)
    for numbers in NUMBERS:
        how = {"X": frames} if numbers in ("int16", "int8") and "forecaster" not in name else {}
        yield f"{numbers}", exported(model(name), run.work / "model.h", numbers=numbers, **how)


@case
def headers_in_c(run: Run) -> Any:
    return {name: dict(headers(name, run)) for name in (*NAMES, *OTHERS)}


@case
def onnx_graphs(run: Run) -> Any:
    """Whole sequences and single steps, in both types of number."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        return "onnx is not installed"
    forms = [(step, numbers) for step in (False, True) for numbers in (None, "float32", "float64")]
    return {
        name: {
            f"{'step' if step else 'whole'} {numbers}": exported(
                model(name), run.work / "model.onnx", step=step, numbers=numbers, name="net"
            )
            for step, numbers in forms
        }
        for name in (*NAMES, *OTHERS)
    }


def payload(page: str) -> Any:
    """The data in a page for the browser: what stands in scripts that are not code."""
    page = page.replace('"pooling":null', '"summary":null')  # its former name
    page = (
        page.replace('"layers":[{', '"network":{').replace('"passing":null,', "").replace('}],"summary"', '},"summary"')
    )
    return re.findall(r'<script[^>]*type="application/[^>]*>(.*?)</script>', page, re.S) or page


@case
def pages(run: Run) -> Any:
    found = {}
    for name in ("classifier", "regressor", "deep classifier", "forecaster", "pipeline"):
        files = exported(model(name), run.work / "model.html", name="net")
        found[name] = files if isinstance(files, str) else [payload(page) for page in files.values()]
    return found


@case
def exports_of_series(run: Run) -> Any:
    """Graphs without the facts beside them, which name the estimator; pages; and which exports are refused."""
    found: dict[str, Any] = {}
    for name in SERIES:
        for numbers in (None, "float32", "float64"):
            public("export_model")(model(name), run.work / "model.onnx", numbers=numbers, name="net")
            found[f"{name} {numbers}"] = graph(run.work / "model.onnx")
        for file, how in (("model.h", {}), ("model.onnx", {"step": True})):
            found[f"{name} refused {file}"] = isinstance(exported(model(name), run.work / file, **how), str)
        found[f"{name}, page"] = page_arrays(exported(model(name), run.work / "model.html", name="net"))
    return found


def graph(file: Path) -> Any:
    """The graph of a file in ONNX, without its description."""
    try:
        import onnx
    except ImportError:
        return "onnx is not installed"
    found = onnx.load(file).graph
    found.ClearField("doc_string")
    return found.SerializeToString()


def page_arrays(files: dict[str, str]) -> list[str]:
    """The packed arrays in the data of pages, in their order."""
    return [array for page in files.values() for array in re.findall(r'"[A-Za-z0-9+/]{20,}={0,2}"', str(payload(page)))]


# ---------------------------------------------------------------- the runtime


def light(name: str, run: Run) -> Any:
    """A saved model in the runtime: answers, one stream, several streams, and streams that are saved and resumed."""
    from echolearn import runtime

    path = run.work / f"{name} of the runtime.safetensors"
    echolearn.save(model(name), path)
    found: dict[str, Any] = {"file": arrays_of(path)}
    whose = path if name in SERIES else run.handed(path)  # a file has another estimator of series at some commits
    loaded = refusal(lambda: runtime.load(whose), public("ExportError"))
    if isinstance(loaded, str):
        return found | {"refusal": loaded}
    found["facts"] = [plain(repr(loaded)), loaded.n_features_in_]
    if "forecaster" in name:
        return found | {"forecasts": forecasts(name, loaded)}
    for verb in ("predict", "predict_proba"):
        answer = getattr(loaded, verb)
        found[verb] = refusal(lambda answer=answer: [answer(new_X), answer(new_X[0]), answer(new_X, warm_up="cold")],
                              AttributeError)  # fmt: skip
        found[f"{verb} after others"] = refusal(
            lambda answer=answer: answer(new_X[:3], warm_up=new_X[2:]), ValueError, TypeError, AttributeError
        )
    found["stream"] = refusal(lambda: streamed(loaded, run), ValueError, TypeError)
    if name in SERIES:
        found["stream"] = isinstance(found["stream"], str)
    return found


def forecasts(name: str, loaded: Any) -> Any:
    known = series(2, 90)
    if name == "forecaster":
        return loaded.forecast(12), loaded.forecast(5, known[0][:, 0])
    if name == "forecaster with inputs":
        later = weather(412)[400:]
        return loaded.forecast(12, exogenous=later), loaded.forecast(10, known[0], exogenous=weather(100))
    return loaded.forecast(12), loaded.forecast(5, known[0]), loaded.forecast(5, known)


def streamed(loaded: Any, run: Run) -> Any:
    frames, stream = np.vstack(new_X)[:60], loaded.stream()
    found: dict[str, Any] = {"step": [stream.step(x) for x in frames[:20]], "predict": stream.predict(frames[20])}
    stream.save(run.work / "stream")
    again = loaded.stream().resume(run.work / "stream")
    found["resumed"] = [[s.step(x) for x in frames[21:25]] for s in (again, stream.copy())]
    found["state"] = [stream.states, stream.steps]
    devices = loaded.streams(4)
    found["devices"] = [devices.step(frames[4 * i : 4 * i + 4]) for i in range(8)]
    devices.reset([1, 3])
    found["reset"] = [devices.predict(frames[40:44]), devices.steps, devices.states]
    devices.save(run.work / "devices")
    found["devices resumed"] = loaded.streams(4).resume(run.work / "devices").step(frames[44:48])
    return found


@case
def runtime(run: Run) -> Any:
    return {name: light(name, run) for name in (*NAMES, *OTHERS)}


@case
def runtime_of_series(run: Run) -> Any:
    return {name: light(name, run) for name in SERIES}


@case
def streams_of_estimators(run: Run) -> Any:
    """`streams`, pipelines as streams, their snapshots, and a stream that follows one training series."""
    frames, found = np.vstack(new_X)[:60], {}
    for name in ("classifier", "regressor", "classifier, feedback", "classifier, gaps", "regressor, one series"):
        esn = model(name)
        devices = esn.streams(3)
        found[name] = [[devices.step(frames[3 * i : 3 * i + 3]) for i in range(5)], devices.predict(frames[20:23])]
        stream = esn.stream()
        found[f"{name}, one"] = [stream.predict(frames[:9]), stream.state]
        stream.save(run.work / "snapshot")
        found[f"{name}, resumed"] = esn.stream().resume(run.work / "snapshot").predict(frames[9:20])
        found[f"{name}, others"] = [
            esn.stream(warm_up=frames[:5]).predict(frames[5:9]), esn.stream(warm_up="cold").predict(frames[5:9])
        ]  # fmt: skip
    for name in OTHERS:
        if name.startswith("pipeline"):
            stream = echolearn.stream(model(name))
            found[name] = [stream.predict(frames[:9]), stream.predict_proba(frames[9:12])]
            stream.save(run.work / "snapshot")
            found[f"{name}, resumed"] = echolearn.stream(model(name)).resume(run.work / "snapshot").predict(frames)
    return found


@case
def pipelines(run: Run) -> Any:
    """Files of pipelines, and those that the first commit wrote."""
    found: dict[str, Any] = {}
    for name in OTHERS:
        if name.startswith("pipeline"):
            path = run.work / f"{name}.safetensors"
            echolearn.save(model(name), path)
            loaded = echolearn.load(run.handed(path))
            echolearn.save(loaded, run.work / "again.safetensors")
            found[name] = [arrays_of(path), arrays_of(run.work / "again.safetensors")]
            found[f"{name}, answers"] = [m.predict_proba(new_X) for m in (model(name), loaded)]
    return found
