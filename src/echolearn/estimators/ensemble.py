"""Several networks, each fitted on its own, that answer by the mean of their outputs.

The outputs of k networks have a mean that is itself the output of one network (`readout.network.average`). Such
ensembles overfit less than as many units that learn as one network, and cost less: k Gram matrices of (N/k)² instead of
one of N², and cores that need not wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock

import numpy as np

from echolearn.estimators.dealt_networks import fit_on_workers, workers_hold
from echolearn.estimators.examination import joined_examinations
from echolearn.estimators.fitting import Callback, FitRequest, FittedNetwork, fit_network
from echolearn.exceptions import AbandonedError
from echolearn.execution.blas import one_blas_thread
from echolearn.execution.threads import map_in_order
from echolearn.readout.network import average
from echolearn.training.history import History
from echolearn.training.progress import say

# the parameters in which the networks differ from one another, or from the estimator
OWN = ("hidden_units", "ensemble", "random_state", "verbose", "initial_state", "leak")


def fit_ensemble(request: FitRequest, count: int) -> FittedNetwork:
    """Fit each network on one core, from end to end. After Ctrl-C, what has been learned by then is kept.

    On a cluster, each network is fitted by one thread of a worker, if every worker has the memory for all the data.
    """

    def on_done(index: int) -> None:
        say(request.settings.verbose, f"network {index + 1} of {count}: done")

    fit = fit_on_workers if workers_hold(request) else _fit_here
    fitted, stopped = fit(_requests(request, count), on_done)
    done = [one for one in fitted if one is not None]
    if not done:
        raise KeyboardInterrupt
    return FittedNetwork(
        network=average([one.network for one in done]),
        history=_numbered([one.history for one in done]),
        refinement=_numbered([one.refinement for one in done]),
        interrupted=stopped,
        examination=joined_examinations([one.examination for one in done]),
    )


def _fit_here(
    requests: Sequence[FitRequest], on_done: Callable[[int], object]
) -> tuple[list[FittedNetwork | None], bool]:
    """Return the fitted networks, and whether Ctrl-C has ended them early; those that had not begun then are None."""
    fitted: list[FittedNetwork | None] = [None] * len(requests)
    running, stop, failed = [Lock() for _ in requests], Event(), Event()

    def fit_one(index: int) -> None:
        callback = requests[index].callback

        def after_epoch(row: dict[str, float]) -> object:
            if failed.is_set():
                raise AbandonedError
            if stop.is_set():
                raise KeyboardInterrupt
            return None if callback is None else callback(row)

        with running[index]:
            if stop.is_set():
                return
            result = fit_network(replace(requests[index], callback=after_epoch))
            fitted[index] = result
            if result.interrupted:
                stop.set()  # by a callback; the other networks end too
        on_done(index)

    with one_blas_thread():
        try:
            deque(map_in_order(fit_one, range(len(requests))), maxlen=0)
        except BaseException as problem:
            stop.set()
            if not isinstance(problem, KeyboardInterrupt):
                failed.set()
            for lock in running:
                lock.acquire()  # until the network has ended; after Ctrl-C with a readout for what it has learned
            if failed.is_set():
                raise
    return fitted, stop.is_set()


def _requests(request: FitRequest, count: int) -> list[FitRequest]:
    """Return the fits of the networks, each with its share of the units and a seed of its own."""
    settings = request.settings
    seeds = np.random.default_rng(settings.random_state).integers(2**31, size=count)
    requests = []
    for number, (units, seed) in enumerate(
        zip(np.array_split(np.arange(settings.hidden_units), count), seeds, strict=True), 1
    ):
        own = replace(
            settings,
            hidden_units=len(units),
            ensemble=1,
            random_state=int(seed),
            verbose=settings.verbose if number == 1 else 0,  # progress is shown for the first one only
            leak=settings.leak[units] if isinstance(settings.leak, np.ndarray) else settings.leak,
            initial_state=None if settings.initial_state is None else np.asarray(settings.initial_state)[units],
        )
        folder = None if request.checkpoint is None else Path(request.checkpoint) / f"network-{number}"
        requests.append(
            replace(
                request,
                settings=own,
                params={**request.params, **{name: getattr(own, name) for name in OWN}},
                callback=_numbering(request.callback, number),
                checkpoint=folder,
                networks=count,
            )
        )
    return requests


def _numbering(callback: Callback | None, number: int) -> Callback | None:
    """Return a callback whose rows have the number of their network."""
    return None if callback is None else lambda row: callback({"network": number, **row})


def _numbered(histories: list[History]) -> History:
    return History({"network": number, **row} for number, history in enumerate(histories, 1) for row in history)
