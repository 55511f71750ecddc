"""Fits and predictions on the workers of a Dask cluster, with the same results as in one process (extra `dask`)."""

from echolearn.cluster.connection import on

__all__ = ["on"]
