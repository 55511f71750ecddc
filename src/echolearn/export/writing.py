"""`export_model`: a fitted model to a file, in the format that its ending says."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from echolearn.export.c_header import c_header
from echolearn.export.c_speech import c_features
from echolearn.export.c_text import check_name
from echolearn.export.onnx_model import onnx_model
from echolearn.export.page import build_page, page_model
from echolearn.export.plan import ExportError, Plan
from echolearn.export.planning import plan_of
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech.recognition.recognizer import Recognizer
from echolearn.validation.array_types import Array
from echolearn.validation.values import check_boolean, check_path

PAGES = (".html", ".htm")


def export_model(
    model: BaseEstimator | Recognizer,
    path: str | PathLike[str],
    *,
    name: str = "esn",
    step: bool = False,
    numbers: str | None = None,
    X: ArrayLike | None = None,
) -> list[Path]:
    """Write a fitted model for other places: an ONNX file, a header in C, or a page for the browser.

    Pages: docs/howto/browser.md; the others: docs/howto/export.md.

    Parameters
    ----------
    model : estimator of echolearn, sklearn.pipeline.Pipeline, or Recognizer
        A fitted classifier, regressor, forecaster or stack, or a pipeline that ends in one. Its steps before the
        network may be StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA and SimpleImputer, in `FrameWise`
        or without it. Of a recogniser of speech the network is exported, whose classes have the names of its states;
        in C, a second header beside the first computes its features from sound: NAME_features.h beside NAME.h.
    path : str or path-like
        Where to write. The ending decides: .onnx for ONNX (extra `onnx`), .h for C, .html for a page in which the
        model runs. The file appears when it is complete; an existing one is replaced.
    name : str, default="esn"
        With what the names of functions in C begin; in ONNX, the name of the graph; in a page, what it calls the model.
    step : bool, default=False
        Whether an ONNX graph takes one frame and a state at a time, instead of whole sequences. C always does.
    numbers : {"float32", "float64", "int16", "int8"}, default=None
        In which numbers the network computes. None: those of its `dtype`. int16 and int8 are for C only; a page takes
        None.
    X : array of shape (n_steps, n_features), default=None
        A sequence on which the loss by `numbers` is measured; it is written into the header. For C only.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    ExportError
        If the model, or an option of it, cannot be exported; the message names it.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from echolearn import ESNRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> esn = ESNRegressor(10, learn="none").fit(X, np.roll(X[:, 0], 1))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.h"
    >>> esn.export(path, name="delay")
    >>> "void delay_step(delay_state *s, const float *x, float *out)" in path.read_text()
    True
    """
    place = check_path("path", path)
    check_name(name)
    check_boolean("step", step)
    if place.suffix not in (".onnx", ".h", *PAGES):
        raise ExportError(f"{place.name!r:.80} says no format; expected a name that ends in .onnx, .h or .html.")
    if place.suffix in PAGES:
        if step or numbers is not None or X is not None:
            raise ExportError("step, numbers and X are for ONNX and C; leave them out for a page.")
        page = build_page([page_model(name, model)])
        write_atomically(place, page.html.encode("utf-8"))
        return [place]
    plan = _plan(model)
    if place.suffix == ".onnx":
        if X is not None:
            raise ExportError("X measures the loss of a header in C; leave it out for ONNX.")
        content = onnx_model(plan, step=step, numbers=numbers, name=name)
    else:
        if step:
            raise ExportError("step=True is for ONNX; a header in C always takes one frame at a time. Leave it out.")
        frames = None if X is None else _frames(X, plan)
        content = c_header(plan, name=name, numbers=numbers, X=frames).encode("ascii")
    written = [place]
    if isinstance(model, Recognizer) and place.suffix == ".h" and model.features.audio:
        written.append(place.with_name(f"{place.stem}_features.h"))
        write_atomically(written[-1], c_features(model.features, name=name).encode("ascii"))
    write_atomically(place, content)
    return written


def _plan(model: BaseEstimator | Recognizer) -> Plan:
    """Return the plan of a model, of a recogniser that of its network."""
    if not isinstance(model, Recognizer):
        return plan_of(model)
    plan = plan_of(model.model)
    return replace(plan, answer=replace(plan.answer, names=model.phones.states))


def _frames(X: ArrayLike, plan: Plan) -> Array:
    """Return the frames on which losses are measured."""
    try:
        frames = np.asarray(X, np.float32)
    except (TypeError, ValueError):
        raise ExportError("X holds no numbers; expected one array of frames.") from None
    if frames.ndim != 2 or frames.shape[1] != plan.n_features or len(frames) == 0:
        raise ExportError(f"X has shape {frames.shape}; expected one sequence of shape (steps, {plan.n_features}).")
    return frames
