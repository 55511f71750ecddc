"""Fits and predictions on the workers of a Dask cluster, with the same results as in one process (extra `dask`)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echolearn.cluster.connection import on as on
    from echolearn.cluster.dealing import Dealer as Dealer
    from echolearn.cluster.dealing import Report as Report
    from echolearn.cluster.executor import ClusterExecutor as ClusterExecutor
    from echolearn.cluster.sources import open_inputs as open_inputs
    from echolearn.cluster.sources import open_source as open_source
    from echolearn.cluster.worker import warnings_to as warnings_to

__all__ = ["on"]

# Imported at first use: a fit in one process loads none of them.
_HOMES = {
    "ClusterExecutor": "executor",
    "Dealer": "dealing",
    "Report": "dealing",
    "on": "connection",
    "open_inputs": "sources",
    "open_source": "sources",
    "warnings_to": "worker",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
