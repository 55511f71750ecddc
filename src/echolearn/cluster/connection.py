"""Connections to a Dask cluster, and the context in which fits and predictions use it."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from echolearn import __version__
from echolearn.cluster.executor import Client, ClusterExecutor
from echolearn.exceptions import ClusterError
from echolearn.execution.executor import executing_on

CONNECT_SECONDS = 20  # seconds to wait for a scheduler, and for its first worker


@contextmanager
def on(address: str | Client, security: object = None) -> Iterator[ClusterExecutor]:
    """Return a context in which fits and predictions send their data to a Dask cluster and work there.

    It requires the extra `dask`. Results have the same bits as in this process, even if workers fail and are replaced
    (docs/howto/scaling.md).

    Parameters
    ----------
    address : str or distributed.Client
        The address of a scheduler (``"tcp://host:8786"``), a client, or ``"dask"`` for the client that exists already.
    security : distributed.Security, default=None
        TLS keys and certificates for an address; needed for a scheduler at ``"tls://..."`` unless Dask's own
        configuration names them.

    Yields
    ------
    ClusterExecutor
        The executor that makes the passes over the data.

    Raises
    ------
    ClusterError
        If the cluster cannot be reached, or has another version of Python or echolearn.

    Examples
    --------
    >>> from echolearn import ESNClassifier, cluster
    >>> with cluster.on("tcp://scheduler:8786"):  # doctest: +SKIP
    ...     esn = ESNClassifier(500).fit(X, y)
    ...     esn.score(X_test, y_test)
    """
    client, is_ours = _client(address, security)
    try:
        _check(client)
        executor = ClusterExecutor(client)
        with executing_on(executor):
            yield executor
    finally:
        if is_ours:
            client.close()


def use_engine(engine: str | Client | None) -> AbstractContextManager[object]:
    """Return the context of the parameter `engine` of a fit: what `on` takes, or None for the executor in use."""
    return nullcontext() if engine is None else on(engine)


def _client(address: object, security: object) -> tuple[Client, bool]:
    """Return the client, and whether it is to be closed at the end."""
    try:
        import distributed
    except ImportError as problem:
        raise ClusterError(
            f"a Dask cluster needs the package distributed ({problem}): pip install 'echolearn[dask]'"
        ) from problem
    if isinstance(address, distributed.Client):
        if address.asynchronous:
            raise ClusterError("this distributed.Client is asynchronous; give one made with asynchronous=False.")
        return address, False
    if address == "dask":
        try:
            return distributed.default_client(), False
        except ValueError as problem:
            raise ClusterError(
                "engine='dask' uses the distributed.Client that exists, and there is none. Make one, "
                "Client('tcp://host:8786'), or give the scheduler's address as the engine."
            ) from problem
    if not isinstance(address, str) or "://" not in address:
        raise ClusterError(
            f"engine={address!r}; expected 'dask', a scheduler's address such as 'tcp://host:8786', or a "
            "distributed.Client."
        )
    try:
        return distributed.Client(address, security=security, timeout=CONNECT_SECONDS, set_as_default=False), True
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as problem:
        raise ClusterError(
            f"no Dask scheduler answers at {address} ({problem}). Is it running (dask scheduler), is the port open, "
            "and does the protocol fit (tcp:// or tls://)?"
        ) from problem


def _check(client: Client) -> None:
    """Refuse a scheduler or workers with another version of echolearn or Python, which could not run our functions."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError as problem:
        address = client.scheduler.address
        raise ClusterError(
            f"the scheduler at {address} has no workers after {CONNECT_SECONDS} s. Start some: dask worker {address}"
        ) from problem
    ours = platform.python_version()
    for name, version in _on_every_machine(client, platform.python_version):
        if version.split(".")[:2] != ours.split(".")[:2]:
            raise ClusterError(f"{name} runs Python {version}, here is {ours}. Use the same minor version everywhere.")
    for name, version in _on_every_machine(client, importlib.metadata.version, "echolearn"):
        if version != __version__:
            raise ClusterError(f"{name} has echolearn {version}, here is {__version__}. Install the same everywhere.")


def _on_every_machine(client: Client, function: Callable[..., str], *arguments: str) -> Iterator[tuple[str, str]]:
    """Yield the name of the scheduler, and of each worker, with what a function returns there; "none" for a missing
    package. A worker that dies in the meantime is left out."""
    missing = importlib.metadata.PackageNotFoundError
    try:
        yield "the scheduler", client.run_on_scheduler(function, *arguments)
    except missing:
        yield "the scheduler", "none"
    for address, answer in client.run(function, *arguments, on_error="return").items():
        if isinstance(answer, (str, missing)):
            yield f"the worker {address}", answer if isinstance(answer, str) else "none"
