"""Fits and predictions on the workers of a Dask cluster, with the same results as in one process (extra `dask`)."""

from echolearn.cluster.connection import on as on
from echolearn.cluster.worker import ClusterError as ClusterError
