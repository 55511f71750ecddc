"""`open_model`: from a model file to what a page shows of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from echolearn.estimators.loading import load
from echolearn.export.page.document import PageModel
from echolearn.export.page.packing import Json, pack_array
from echolearn.export.plan import ExportError
from echolearn.export.planning import plan_of
from echolearn.modelfile.layout import RECOGNIZER
from echolearn.modelfile.reader import file_kind

RESIDUALS = 2000  # of a forecaster that a page draws its interval from


def open_model(path: Path) -> PageModel:
    """Return the model of a file, under the name of the file."""
    if file_kind(path) == RECOGNIZER:
        raise ExportError(f"{path} is a recogniser of speech, which this version cannot show in a page.")
    return page_model(path.name, load(path))


def page_model(name: str, model: BaseEstimator) -> PageModel:
    """Return a fitted model with what the views of a page need beside its plan."""
    extra: dict[str, Json] = {}
    residuals = getattr(getattr(model, "forecast_", None), "residuals", None)
    if residuals is not None and len(residuals):
        kept = np.linspace(0, len(residuals) - 1, min(len(residuals), RESIDUALS)).round().astype(int)
        extra["residuals"] = pack_array(np.asarray(residuals, np.float64)[kept], "f4")
    return PageModel(name, plan_of(model), extra)
