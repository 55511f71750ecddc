"""Fitted models as files, and back."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echolearn.persistence.forecasts import forecast_facts as forecast_facts
    from echolearn.persistence.forecasts import forecast_tensors as forecast_tensors
    from echolearn.persistence.forecasts import restore_forecaster as restore_forecaster

# Imported at first use: only a forecaster loads the forecasts.
_HOMES = dict.fromkeys(("forecast_facts", "forecast_tensors", "restore_forecaster"), "forecasts")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
