"""The same sums over data on a Dask cluster (extra `dask`)."""

from echolearn.cluster.connection import on as on
