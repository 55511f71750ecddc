"""`export_model`: write a fitted model to a file, in the format that its ending names.

The writer of a format is imported when it is used, and the code for speech for recognisers alone.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from echolearn.exceptions import ExportError
from echolearn.export.c.text import check_name
from echolearn.export.plan import load, plan_of
from echolearn.modelfile.atomic import write_atomically
from echolearn.runtime._plan import Plan
from echolearn.validation import Array, check_boolean, check_path

if TYPE_CHECKING:
    from echolearn.speech.recognition import Recognizer

PAGE_ENDINGS = (".html", ".htm")


def export_model(
    model: BaseEstimator | Recognizer,
    path: str | PathLike[str],
    *,
    name: str = "esn",
    step: bool = False,
    numbers: str | None = None,
    X: ArrayLike | None = None,
) -> list[Path]:
    """Write a fitted model as an ONNX file, a header in C, or a page for the browser.

    ONNX and C: docs/howto/export.md. Pages for the browser: docs/howto/browser.md.

    Parameters
    ----------
    model : estimator of echolearn, sklearn.pipeline.Pipeline, or Recognizer
        A fitted classifier, regressor or forecaster, or a pipeline that ends in one. Its steps before the
        network may be StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA and SimpleImputer, in `FrameWise`
        or without it. Of a recogniser of speech the network is exported, and its classes are named after its states.
        In C, a second header, NAME_features.h beside NAME.h, computes its features from sound.
    path : str or path-like
        The file to write. Its ending is the format: .onnx for ONNX (extra `onnx`), .h for C, .html for a page in which
        the model runs. The file appears when it is complete, and replaces one that exists.
    name : str, default="esn"
        The prefix of the functions in C, the name of the graph in ONNX, or the name of the model on a page. Change it
        if a program includes several models.
    step : bool, default=False
        Whether an ONNX graph takes one frame and a state at a time, instead of whole sequences. Code in C always takes
        one frame at a time.
    numbers : {"float32", "float64", "int16", "int8"}, default=None
        The type of number in which the exported network computes. None: the `dtype` of the model. "int16" and "int8"
        are for C on small processors only. A page for the browser requires None.
    X : array of shape (n_steps, n_features), default=None
        A sequence on which the loss of accuracy by `numbers` is measured. The result is written into the header. For
        C only.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    ExportError
        If the model, or an option of it, cannot be exported; the message names it.

    See Also
    --------
    echolearn.runtime.load : Run a saved model with NumPy alone.

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
    if place.suffix not in (".onnx", ".h", *PAGE_ENDINGS):
        raise ExportError(f"{place.name!r:.80} has no known ending; expected a name that ends in .onnx, .h or .html.")
    if place.suffix in PAGE_ENDINGS:
        if step or numbers is not None or X is not None:
            raise ExportError("step, numbers and X are for ONNX and C; leave them out for a page.")
        page = load("echolearn.export.page.document")
        contents = {place: page.build_page([page.page_model(name, model)]).encode("utf-8")}
    elif place.suffix == ".onnx":
        if X is not None:
            raise ExportError("X measures the loss of a header in C; leave it out for ONNX.")
        graph = load("echolearn.export.onnx.graph")
        contents = {place: graph.onnx_model(_plan(model), step=step, numbers=numbers, name=name)}
    else:
        if step:
            raise ExportError("step=True is for ONNX; a header in C always takes one frame at a time. Leave it out.")
        contents = _headers(model, place, name, numbers, X)
    for file in reversed(contents):  # the header of a network appears after that of its features
        write_atomically(file, contents[file])
    return list(contents)


def _headers(
    model: BaseEstimator | Recognizer, place: Path, name: str, numbers: str | None, X: ArrayLike | None
) -> dict[Path, bytes]:
    """Return the headers in C of a network, and of the features of a recogniser of sound."""
    plan = _plan(model)
    frames = None if X is None else _frames(X, plan)
    header = load("echolearn.export.c.header").c_header(plan, name=name, numbers=numbers, X=frames)
    texts = {place: header}
    if _is_recognizer(model) and model.features.audio:
        features = load("echolearn.export.c.speech").c_features(model.features, name=name)
        texts[place.with_name(f"{place.stem}_features.h")] = features
    return {file: text.encode("ascii") for file, text in texts.items()}


def _is_recognizer(model: BaseEstimator | Recognizer) -> TypeGuard[Recognizer]:
    """Return whether a model is a recogniser; speech is not imported for an estimator."""
    if isinstance(model, BaseEstimator):
        return False
    return isinstance(model, load("echolearn.speech.recognition").Recognizer)


def _plan(model: BaseEstimator | Recognizer) -> Plan:
    """Return the plan of a model, of a recogniser that of its network."""
    if _is_recognizer(model):
        plan = plan_of(model.model)
        return replace(plan, answer=replace(plan.answer, names=model.phones.states))
    return plan_of(model)


def _frames(X: ArrayLike, plan: Plan) -> Array:
    """Return the frames on which losses are measured."""
    try:
        frames = np.asarray(X, np.float32)
    except (TypeError, ValueError):
        raise ExportError("X holds no numbers; expected one array of frames.") from None
    if frames.ndim != 2 or frames.shape[1] != plan.n_features or len(frames) == 0:
        raise ExportError(f"X has shape {frames.shape}; expected one sequence of shape (steps, {plan.n_features}).")
    return frames
