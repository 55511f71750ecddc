"""`open_models`: from model files to what a page shows of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from echolearn.estimators.loading import load
from echolearn.exceptions import ExportError
from echolearn.export.page.document import PageModel
from echolearn.export.page.packing import Json, pack_array
from echolearn.export.page.speech_payload import (
    example_recording,
    hears_sound,
    names_states,
    network_payload,
    recognizer_payload,
)
from echolearn.export.plan import plan_of
from echolearn.modelfile.layout import RECOGNIZER
from echolearn.modelfile.reader import file_kind
from echolearn.runtime._plan import Plan
from echolearn.speech.recognition import Recognizer, load_recognizer

_COMPARED: dict[str, Callable[[Plan], object]] = {
    "their numbers of inputs are": lambda plan: plan.n_features,
    "their numbers of outputs are": lambda plan: plan.answer.n_out,
    "their answers are": lambda plan: plan.answer.output,
    "their classes are": lambda plan: plan.answer.names,
    "one answer per step (True) or per sequence (False):": lambda plan: plan.pooling is None,
    "whether they are forecasters:": lambda plan: plan.horizon is not None,
}
EXAMPLE_BYTES = 500_000
RESIDUALS = 2000  # of a forecaster that a page draws its interval from


def open_models(path: Path, compare: Path | None = None, example: Path | None = None) -> list[PageModel]:
    """Read the model of a file, and optionally a second one to be shown beside it, for a page.

    Parameters
    ----------
    path : Path
        A model file.
    compare : Path, default=None
        A second model file, whose model takes the same frames and has the same classes or values.
    example : Path, default=None
        A CSV file with which the page opens: one step per line, one column per feature. Of a recogniser, a recording.

    Returns
    -------
    list of PageModel
        One or two models, for `build_page`.

    Raises
    ------
    ExportError
        If a model cannot be shown, or the two cannot be shown together; the message gives the reason.
    """
    models = [open_model(place) for place in (path, compare) if place is not None]
    check_comparable(models)
    if example is None:
        return models
    if all("speech" in model.extra for model in models):
        return [with_recording(models[0], example), *models[1:]]
    text = _example_text(example)
    return [replace(model, extra={**model.extra, "example": text}) for model in models]


def with_recording(model: PageModel, path: Path) -> PageModel:
    """Return a model whose page opens with a recording."""
    return replace(model, extra={**model.extra, "example": example_recording(path)})


def _example_text(path: Path) -> str:
    """Return the text of a table that is small enough for a page."""
    if path.stat().st_size > EXAMPLE_BYTES:
        raise ExportError(f"{path} has {path.stat().st_size:,} bytes; an example has at most {EXAMPLE_BYTES:,}.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ExportError(f"{path} is not a text file in UTF-8; expected a table as CSV.") from None


def check_comparable(models: Sequence[PageModel]) -> None:
    """Raise ExportError unless all models take the same frames and give the same kind of answers."""
    for model in models[1:]:
        for what, of in _COMPARED.items():
            ours, theirs = of(models[0].plan), of(model.plan)
            if ours != theirs:
                raise ExportError(
                    f"{models[0].name} and {model.name} cannot be shown beside each other: {what} {ours} and {theirs}."
                )


def open_model(path: Path) -> PageModel:
    """Return the model of a file, under the name of the file."""
    return page_model(path.name, load_recognizer(path) if file_kind(path) == RECOGNIZER else load(path))


def page_model(name: str, model: BaseEstimator | Recognizer) -> PageModel:
    """Return a fitted model in the form that `build_page` takes.

    Parameters
    ----------
    name : str
        The name of the model on the page.
    model : estimator of echolearn, sklearn.pipeline.Pipeline, or Recognizer
        A fitted classifier, regressor, forecaster or stack, a pipeline that ends in one, or a recogniser of speech.

    Returns
    -------
    PageModel
        The model with its plan and the further data that the views of a page need.

    Raises
    ------
    ExportError
        If the model, or an option of it, cannot be exported; the message names it.

    See Also
    --------
    build_page : The page with one or more models.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNRegressor
    >>> from echolearn.export.page import build_page, page_model
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> esn = ESNRegressor(10, learn="none").fit(X, np.roll(X[:, 0], 1))
    >>> build_page([page_model("delay", esn)]).html[:15]
    '<!doctype html>'
    """
    if isinstance(model, Recognizer):
        return PageModel(name, plan_of(model.model), {"speech": recognizer_payload(model)})
    extra: dict[str, Json] = {}
    residuals = getattr(getattr(model, "forecast_", None), "residuals", None)
    if residuals is not None and len(residuals):
        kept = np.linspace(0, len(residuals) - 1, min(len(residuals), RESIDUALS)).round().astype(int)
        extra["residuals"] = pack_array(np.asarray(residuals, np.float64)[kept], "f4")
    plan = plan_of(model)
    if plan.pooling is None and names_states(plan.answer.names) and hears_sound(plan.n_features):
        extra["speech"] = network_payload(plan.answer.names, plan.n_features)
    return PageModel(name, plan, extra)
