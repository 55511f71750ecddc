"""Fits and predictions on the workers of a Dask cluster, with the same results as in one process (extra `dask`)."""

from typing import TYPE_CHECKING

from echolearn._lazy import names_at_first_use

if TYPE_CHECKING:
    from echolearn.cluster.connection import on as on
    from echolearn.cluster.executor import ClusterExecutor as ClusterExecutor
    from echolearn.cluster.remote_data import open_inputs as open_inputs
    from echolearn.cluster.remote_data import open_source as open_source
    from echolearn.cluster.tasks import Dealer as Dealer
    from echolearn.cluster.tasks import Report as Report
    from echolearn.cluster.worker import warnings_to as warnings_to

__all__ = ["on"]

# Imported at first use: a fit in one process loads none of them.
__getattr__, __dir__ = names_at_first_use(
    __name__,
    {
        "connection": ("on",),
        "tasks": ("Dealer", "Report"),
        "executor": ("ClusterExecutor",),
        "remote_data": ("open_inputs", "open_source"),
        "worker": ("warnings_to",),
    },
)
