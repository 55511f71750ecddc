"""Fitted models as files, and back."""

from typing import TYPE_CHECKING

from echolearn._lazy import names_at_first_use

if TYPE_CHECKING:
    from echolearn.persistence.forecasts import forecast_facts as forecast_facts
    from echolearn.persistence.forecasts import forecast_tensors as forecast_tensors
    from echolearn.persistence.forecasts import restore_forecaster as restore_forecaster

# Imported at first use: only a forecaster loads the forecasts.
__getattr__, __dir__ = names_at_first_use(
    __name__, {"forecasts": ("forecast_facts", "forecast_tensors", "restore_forecaster")}
)
