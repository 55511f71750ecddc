"""Several networks, each fitted on its own, that answer by the mean of their outputs.

The outputs of k networks have a mean that is itself the output of one network (`readout.network.average`). Such
ensembles overfit less than as many units that learn as one network, and cost less: k Gram matrices of (N/k)² instead of
one of N², and cores that need not wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock
from typing import Any, Protocol, TypeVar

import numpy as np

from echolearn import cluster
from echolearn.display.progress import show_if_verbose, shown_by
from echolearn.exceptions import AbandonedError, CheckpointError
from echolearn.execution.blas import one_blas_thread
from echolearn.execution.executor import LOCAL
from echolearn.execution.threads import map_in_order
from echolearn.fitting.advice.after import joined_examinations
from echolearn.fitting.stages import Callback, Fit, FitRequest, Request, fit_network
from echolearn.modelfile.atomic import write_atomically
from echolearn.modelfile.checkpoint import STATE_FILES, on_save
from echolearn.readout.network import average
from echolearn.sequences.dataset import Dataset
from echolearn.training.history import History
from echolearn.validation import warn_user

# the parameters in which the networks differ from one another, or from the estimator
NETWORK_PARAMETERS = ("hidden_units", "ensemble", "random_state", "verbose", "initial_state", "leak")


def fit_ensemble(request: FitRequest, count: int) -> Fit:
    """Return the mean of several networks, each fitted on one core."""
    done, stopped = fit_networks(fit_network, _requests(request, count))
    return replace(
        Fit.of(average([one.network for one in done])),
        history=numbered([one.history for one in done]),
        refinement=numbered([one.refinement for one in done]),
        interrupted=stopped,
        examination=joined_examinations([one.examination for one in done]),
    )


class Fitted(Protocol):
    """A fit that Ctrl-C may have ended early."""

    @property
    def interrupted(self) -> bool: ...


AnyRequest = TypeVar("AnyRequest", bound=Request)
Result = TypeVar("Result", bound=Fitted)


def fit_networks(fit: Callable[[AnyRequest], Result], requests: Sequence[AnyRequest]) -> tuple[list[Result], bool]:
    """Return fit(request) of each network, on one core from end to end, and whether Ctrl-C ended them early.

    After Ctrl-C, what has been learned by then is kept. On a cluster, each network is fitted by one thread of a worker,
    if every worker has the memory for all the data.
    """

    def on_done(index: int) -> None:
        show_if_verbose(requests[0].params["verbose"], f"network {index + 1} of {len(requests)}: done")

    fit_all = fit_on_workers if workers_hold(requests[0]) else fit_side_by_side
    fitted, stopped = fit_all(fit, requests, on_done)
    done = [one for one in fitted if one is not None]
    if not done:
        raise KeyboardInterrupt
    return done, stopped


def fit_side_by_side(
    fit: Callable[[AnyRequest], Result], requests: Sequence[AnyRequest], on_done: Callable[[int], object]
) -> tuple[list[Result | None], bool]:
    """Return the networks fitted in this process, and whether Ctrl-C ended them; those that had not begun are None.

    If one fails, the others are abandoned.
    """
    fitted: list[Result | None] = [None] * len(requests)
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
            result = fit(replace(requests[index], callback=after_epoch))
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
                params={**request.params, **{name: getattr(own, name) for name in NETWORK_PARAMETERS}},
                callback=numbering(request.callback, number),
                checkpoint=folder,
                networks=count,
            )
        )
    return requests


def numbering(callback: Callback | None, number: int) -> Callback | None:
    """Return a callback whose rows have the number of their network."""
    return None if callback is None else lambda row: callback({"network": number, **row})


def numbered(histories: Sequence[History]) -> History:
    """Return the rows of several histories, each with the number of its network."""
    return History({"network": number, **row} for number, history in enumerate(histories, 1) for row in history)


Files = dict[str, bytes]  # the contents of files by their paths, relative to a folder
Answer = tuple[str, bool]  # "continue", "end" or "abandon", and what the callback has returned


def workers_hold(request: Request) -> bool:
    """Return whether the data of a fit are on a cluster, each of whose workers has the memory for all of them."""
    executor = request.data.executor
    if executor is LOCAL:
        return False
    return isinstance(executor, cluster.ClusterExecutor) and executor.holds(*_datasets(request))


def fit_on_workers(
    fit: Callable[[AnyRequest], Result], requests: Sequence[AnyRequest], on_done: Callable[[int], object]
) -> tuple[list[Result | None], bool]:
    """Return the networks fitted on the workers, as `fit_side_by_side` does in this process."""
    overseer, executor = Overseer(requests, on_done), requests[0].data.executor
    assert isinstance(executor, cluster.ClusterExecutor)
    dealer = cluster.Dealer(executor, overseer.receive, stop=overseer.stop, failed=overseer.failed)
    sent = [replace(one, data=None, validation=None, callback=None) for one in requests]  # type: ignore[arg-type]
    fitted = dealer.deal(partial(fit_on_this_worker, fit, sent), _datasets(requests[0]), len(requests))
    return fitted, overseer.stop.is_set()


def _datasets(request: Request) -> list[Dataset]:
    return [request.data] if request.validation is None else [request.data, request.validation]


class Overseer:
    """Answers the reports of networks on the workers; stop: all end with what they have; failed: all are abandoned."""

    def __init__(self, requests: Sequence[Request], on_done: Callable[[int], object]):
        self.requests, self.on_done = requests, on_done
        self.stop, self.failed = Event(), Event()
        self.answers: list[dict[float, Answer]] = [{} for _ in requests]  # of every epoch that was reported

    def receive(self, number: int, message: tuple[Any, ...]) -> object:
        """Return the answer to a message of network `number`."""
        kind, *rest = message
        if kind == "begin":
            return self._word(), _files(self.requests[number].checkpoint)
        if kind == "epoch":
            return self._after_epoch(number, *rest)
        if kind == "line":
            show_if_verbose(1, *rest)
        elif kind == "warning":
            category, text = rest
            warn_user(text, category)
        elif kind == "state":
            _keep_state(Path(str(self.requests[number].checkpoint)), *rest)
        elif kind == "done":
            self.on_done(number)
        return None

    def _word(self) -> str:
        return "abandon" if self.failed.is_set() else "end" if self.stop.is_set() else "continue"

    def _after_epoch(self, number: int, row: dict[str, float]) -> Answer:
        """Return what a network does after an epoch; one that is repeated is answered as it was before."""
        answers, callback, word = self.answers[number], self.requests[number].callback, self._word()
        if word != "continue":
            return word, False
        if row["epoch"] not in answers:
            try:
                ended = callback is not None and callback(dict(row)) is True
                answers[row["epoch"]] = "continue", ended
            except KeyboardInterrupt:
                self.stop.set()
                return "end", False
        return answers[row["epoch"]]


def fit_on_this_worker(
    fit: Callable[[AnyRequest], Result],
    requests: Sequence[AnyRequest],
    number: int,
    datasets: list[Dataset],
    report: cluster.Report,
) -> Result | None:
    """Fit network `number` on one thread of this worker; None if it is not wanted any more."""
    word, files = report(("begin",))
    if word != "continue":
        return None

    def after_epoch(row: dict[str, float]) -> bool:
        word, ended = report(("epoch", row))
        if word == "abandon":
            raise AbandonedError
        if word == "end":
            raise KeyboardInterrupt
        return bool(ended)

    request = replace(
        requests[number],
        data=datasets[0],
        validation=datasets[1] if len(datasets) > 1 else None,
        callback=after_epoch,
        networks=1,
    )
    with ExitStack() as contexts:
        contexts.enter_context(shown_by(lambda text: report(("line", text))))
        contexts.enter_context(cluster.warnings_to(lambda category, text: report(("warning", category, text))))
        if request.checkpoint is not None:
            folder = contexts.enter_context(_mirrored(Path(request.checkpoint), files, report))
            request = replace(request, checkpoint=folder)
        fitted = fit(request)
    report(("done",))
    return fitted


@contextmanager
def _mirrored(there: Path, files: Files, report: cluster.Report) -> Iterator[Path]:
    """Yield a folder of this worker for the checkpoint that the client has in the folder `there`."""
    with TemporaryDirectory() as name:
        here = Path(name)
        for path, content in files.items():
            (here / path).parent.mkdir(parents=True, exist_ok=True)
            (here / path).write_bytes(content)

        def saved(path: Path) -> None:
            kept = [file.name for file in path.parent.glob(STATE_FILES)]
            report(("state", str(path.relative_to(here)), path.read_bytes(), kept))

        token = on_save.set(saved)
        try:
            yield here
        except CheckpointError as problem:
            raise CheckpointError(str(problem).replace(name, str(there))) from problem
        finally:
            on_save.reset(token)


def _files(folder: object) -> Files:
    """Return the states of a checkpoint, those of all stages."""
    if folder is None:
        return {}
    here = Path(str(folder))
    return {str(path.relative_to(here)): path.read_bytes() for path in here.rglob(STATE_FILES)}


def _keep_state(folder: Path, path: str, content: bytes, kept: list[str]) -> None:
    """Write a state that a worker has saved, and remove those that it has removed."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)
    for old in file.parent.glob(STATE_FILES):
        if old.name not in kept:
            old.unlink(missing_ok=True)
