"""Passes over data on the workers of a Dask cluster, with results equal to those of one process (extra `dask`)."""

from echolearn.cluster.connection import on as on
from echolearn.cluster.worker import ClusterError as ClusterError
