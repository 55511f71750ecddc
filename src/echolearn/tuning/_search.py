"""The search of `tune`: trials proposed by Optuna, scored on held-out sequences, stopped early if they lag behind."""

from __future__ import annotations

import hashlib
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from threading import Event
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit

from echolearn import cluster
from echolearn.display.progress import Bar, clock, show_line
from echolearn.exceptions import AbandonedError
from echolearn.execution.executor import LOCAL, active_executor, executing_on
from echolearn.metrics._scorers import reading_time_first
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import open_sequences
from echolearn.sequences.targets import open_targets
from echolearn.tuning._backtest import backtest
from echolearn.tuning._results import Settings, Trial, Tuning
from echolearn.tuning._space import (
    Options,
    Space,
    answers_per_series,
    checked_space,
    initial_values,
    pipeline_prefix,
    suggested,
)
from echolearn.validation import check_integer, check_pair, check_path

if TYPE_CHECKING:
    import optuna


Sequences = ArrayLike | Sequence[ArrayLike]
MIN_FOLDED_STEPS = 100  # steps from which on one series is cut into folds of time
Part = tuple[Sequences, Sequences]  # X and y
Scoring = Callable[[BaseEstimator, Sequences, Sequences], float]
Score = Callable[["optuna.Trial", BaseEstimator], float]  # may raise optuna.TrialPruned
Description = dict[str, Any]  # JSON


def tune(
    estimator: BaseEstimator,
    X: Sequences,
    y: Sequences | None = None,
    *,
    space: Space | None = None,
    trials: int = 30,
    validation: Part | None = None,
    folds: int = 3,
    scoring: Scoring | None = None,
    storage: str | Path | None = None,
    refit: bool = True,
    random_state: int = 0,
    verbose: int = 0,
) -> Tuning:
    """Search `space` for the settings with the greatest score on held-out sequences.

    Optuna (`pip install 'echolearn[tune]'`) proposes the settings of each trial from the scores of the trials before.
    The first trial has the estimator's own settings, so the search can be compared with them. From the sixth trial on,
    a trial whose held-out error after an epoch lags behind the median of the finished trials is stopped early. In the
    context of `cluster.on`, each fold of a trial is one task of a worker, with the same results.

    Parameters
    ----------
    estimator : estimator
        An estimator such as `ESNClassifier` or `SeriesClassifier`, or a Pipeline that ends in one. It is cloned, never
        changed.
    X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
        The sequences, or one long series.
    y : array or list of arrays, default None
        One label or value per time step (same form as `X`), or one per sequence. None for a forecaster, whose `X` is
        the series: a trial's score is then minus the MASE of `echolearn.backtest` from `folds` rolling origins, over
        the forecaster's own `horizon` or, where that is None, a tenth of the series.
    space : dict, default None
        The settings to search, by name. A pair `(low, high)` with `0 < low <= high` is searched evenly in its
        logarithm, in whole numbers if both are whole; a list is a choice among its members. In a Pipeline, names
        without a prefix are those of its last step. None searches `spectral_radius`, `input_scaling`,
        `reservoir__bias_scaling`, `leak`, and `learning__step_size` where weights are learned; of a `SeriesClassifier`
        or `SeriesRegressor`, `hidden_units` and `standardize`; of a deep network `layers`, `dropout`, `leak` and
        `learning__step_size`. The ridge and the penalty of the softmax readout need not be searched: every fit chooses
        them itself.
    trials : int, default 30
        The total number of trials, including those that `storage` already holds. Use more for a larger space.
    validation : tuple (X, y), default None
        Sequences that every trial is scored on, instead of folds. For a network that learns its weights (not in a
        Pipeline) they also decide when its own learning stops. Give them where the data have a fixed validation part.
    folds : int, default 3
        Without `validation`, a trial's score is the mean over this many folds of the sequences. With one label per
        sequence every fold has every class. One long series is cut in time: every fold follows the steps that it is
        fitted to, and continues their state. More folds take proportionally longer and give a less noisy score.
    scoring : callable, default None
        A function `scoring(estimator, X, y)` that returns a number, greater is better, such as
        `echolearn.metrics.scorer("f1_macro")`. None takes `estimator.score`.
    storage : str or Path, default None
        An SQLite file that holds every finished trial. The same call resumes the search from there; other data,
        settings, folds, another space or scorer are refused. None keeps trials in memory only.
    refit : bool, default True
        Whether to fit the estimator with the best settings on all of `X` and `y` at the end.
    random_state : int, default 0
        The seed of the proposals and of the folds, below 2**32.
    verbose : int, default 0
        1 shows a bar over the trials: live in a notebook and on a terminal; in a log, a line every few seconds.
        2 prints one line per trial.

    Returns
    -------
    Tuning
        The trials, the best settings and score, and the fitted estimator.

    Raises
    ------
    ValueError
        If the space names no setting of the estimator or a range is impossible, if there are fewer sequences than
        folds, or if `storage` holds another search.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNClassifier
    >>> from echolearn.tuning import tune
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(20, 2)) for _ in range(6)]
    >>> y = [(x[:, 0] > 0).astype(int) for x in X]
    >>> network = ESNClassifier(10, learn="none", readout="ridge", random_state=0)
    >>> found = tune(network, X, y, space={"leak": [0.1, 1.0]}, trials=2, folds=2)
    >>> sorted(found.best_settings), len(found.trials)
    (['leak'], 2)
    """
    import_optuna()
    _check_arguments(
        estimator, trials=trials, validation=validation, folds=folds, scoring=scoring, random_state=random_state
    )
    options = checked_space(estimator, space)
    if y is None and not hasattr(estimator, "forecast_interval"):
        raise ValueError(f"y is None; {type(estimator).__name__} needs targets. Only a forecaster learns from X alone.")
    tried = estimator
    if y is None:
        held_out, score = _by_origins(estimator, X, folds)
    else:
        folded, layout = reading_time_first(estimator, X, y)
        tried = folded if validation is None else estimator  # folds are lists of sequences with time first
        held_out, score = _by_splits(
            estimator, (X, y), layout, validation=validation, folds=folds, random_state=random_state, scoring=scoring
        )
    description = {
        "estimator": {k: _described(v) for k, v in estimator.get_params().items() if not k.endswith("verbose")},
        **held_out,
        "space": {name: list(values) for name, values in options.items()},
        "own": initial_values(estimator, options),
    }
    with opened_study(storage, random_state, description) as study:
        with _Progress(study, trials, verbose) as progress:
            while progress.finished < trials:
                _run_trial(study, tried, options, score)
                progress.show_last()
        found = Tuning(finished_trials(study, options), options)
    if not refit:
        return found
    best = _with_settings(estimator, found.best_settings)
    stopping = {"validation": validation} if validation is not None and _stops_early(estimator) else {}
    with executing_on(LOCAL):
        best.fit(X, **({} if y is None else {"y": y, **stopping}))
    return Tuning(found.trials, found.space, best)


# How trials are scored: a description of the data and the score, and the score of an estimator


def _by_origins(estimator: BaseEstimator, series: Sequences, folds: int) -> tuple[Description, Score]:
    """Score forecasters by minus their MASE from rolling origins."""
    sequences = open_sequences([np.asarray(s).reshape(np.shape(s)[0], -1) for s in _listed(series)], gaps=True)
    horizon = getattr(estimator, "horizon", None) or max(1, int(sequences.lengths.min()) // 10)
    description = {
        "data": Dataset(sequences.X, [x.astype("U") for x in sequences.X], None, True, np.dtype("U")).fingerprint(),
        "held out": f"{folds} origins, {horizon} steps",
        "scoring": "MASE",
    }

    def score(trial: optuna.Trial, forecaster: BaseEstimator) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = backtest(forecaster, series, horizon, max(1, folds), coverages=())
        value = -found.scores["model"]["MASE"]
        return value if np.isfinite(value) else -1e30

    return description, score


def _by_splits(
    estimator: BaseEstimator,
    data: Part,
    layout: str,
    *,
    validation: Part | None,
    folds: int,
    random_state: int,
    scoring: Scoring | None,
) -> tuple[Description, Score]:
    """Score networks by held-out sequences."""
    splits = _splits(estimator, data, layout, validation=validation, folds=folds, random_state=random_state)
    description = {
        "data": _fingerprint(data, layout),
        "held out": f"{folds} folds of seed {random_state}" if validation is None else _fingerprint(validation, layout),
        "scoring": _described(scoring),
    }
    executor, placed = active_executor(), None
    if executor is not LOCAL and isinstance(executor, cluster.ClusterExecutor):
        placed = executor.place_values(splits)
    return description, partial(_score, splits=splits, scoring=scoring, placed=placed)


def _listed(series: Sequences) -> list[ArrayLike]:
    """Return series as a list, of one if it is one."""
    several = isinstance(series, (list, tuple)) and any(np.ndim(s) > 0 for s in series)
    return list(series) if several else [series]  # type: ignore[arg-type, list-item]


def _check_arguments(
    estimator: object, *, trials: int, validation: Part | None, folds: int, scoring: Scoring | None, random_state: int
) -> None:
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        raise TypeError(f"estimator={estimator!r:.80}; expected a network, or a Pipeline that ends in one.")
    check_integer("trials", trials, 1)
    check_integer("folds", folds, 0)
    if check_integer("random_state", random_state, 0) >= 2**32:
        raise ValueError(f"random_state={random_state!r:.80}; expected a whole number below 2**32.")
    if validation is not None:
        check_pair("validation", validation)
    if scoring is not None and not callable(scoring):
        raise TypeError(f"scoring={scoring!r:.80}; expected a function of (estimator, X, y), or None.")


def _described(value: object) -> str:
    """Return a parameter as text, by which a resumed search recognises it.

    Of a reservoir or a scorer, all that it holds; of a function, its name and what it does, since all lambdas have one
    name. An address in memory says nothing."""
    if is_dataclass(value):
        return repr({field.name: _described(getattr(value, field.name)) for field in fields(value)})
    if isinstance(value, partial):
        return f"partial of {[_described(part) for part in (value.func, *value.args, *value.keywords.items())]}"
    if isinstance(value, (tuple, list)):
        return repr([_described(part) for part in value])
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        inside = [v if isinstance(v, CONSTANT_TYPES) else type(v) for v in held]  # others may change from call to call
        return f"{value.__module__}.{value.__qualname__} {_described(value.__code__)} {_described(inside)}"
    if isinstance(value, CodeType):
        text = f"{value.co_code!r} {value.co_names} {_described(value.co_consts)}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _stops_early(estimator: BaseEstimator) -> bool:
    """Return whether validation sequences decide when the learning stops."""
    return not pipeline_prefix(estimator) and not answers_per_series(estimator)


def _fingerprint(part: Part, layout: str) -> str:
    """Return a hash of sequences and targets, the targets as text: they may be of any type."""
    sequences = open_sequences(part[0], gaps=True, layout=layout)
    entries, per_step = open_targets(part[1], sequences, missing=True)
    return Dataset(
        sequences.X, [np.asarray(e).astype("U") for e in entries], None, per_step, np.dtype("U")
    ).fingerprint()


def _with_settings(estimator: BaseEstimator, values: Settings) -> BaseEstimator:
    return clone(estimator).set_params(**values)


def _splits(
    estimator: BaseEstimator, data: Part, layout: str, *, validation: Part | None, folds: int, random_state: int
) -> list[tuple[Part, Part]]:
    """Return pairs of a part to fit on and a part to score on."""
    if validation is not None:
        return [(data, validation)]
    sequences = open_sequences(data[0], gaps=True, layout=layout)
    entries, per_step = open_targets(data[1], sequences, missing=True)
    if sequences.kind == "one" and per_step and folds >= 2 and len(sequences.X[0]) >= MIN_FOLDED_STEPS:
        return [
            ((sequences.X[0][train], entries[0][train]), (sequences.X[0][test], entries[0][test]))
            for train, test in TimeSeriesSplit(folds).split(sequences.X[0])
        ]
    if sequences.kind == "one" or folds < 2 or len(sequences.X) < folds:
        raise ValueError(
            f"{folds} folds of {len(sequences.X)} sequence(s): expected a list of sequences, at least as many as "
            f"folds, one series of {MIN_FOLDED_STEPS} steps or more, and folds >= 2. Cut X into sequences, or give "
            "validation=(X, y)."
        )
    kind = StratifiedKFold if is_classifier(estimator) and not per_step else KFold
    folding = kind(folds, shuffle=True, random_state=random_state)

    def sequences_of(which: Sequence[int]) -> Part:
        return [sequences.X[i] for i in which], [entries[i] for i in which]

    return [
        (sequences_of(train), sequences_of(test))
        for train, test in folding.split(sequences.X, None if per_step else entries)
    ]


def _run_trial(study: optuna.Study, estimator: BaseEstimator, space: Mapping[str, Options], score: Score) -> None:
    """Run one trial; one that lags behind, or has no finite score, is recorded as pruned."""
    optuna = import_optuna()
    trial = study.ask()
    try:
        values = {name: suggested(trial, name, options) for name, options in space.items()}
        value = score(trial, _with_settings(estimator, values))
        if not np.isfinite(value):
            raise optuna.TrialPruned
    except optuna.TrialPruned:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    except BaseException:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        raise
    else:
        study.tell(trial, value)


def _score(
    trial: optuna.Trial,
    estimator: BaseEstimator,
    splits: Sequence[tuple[Part, Part]],
    scoring: Scoring | None,
    placed: Dataset | None,
) -> float:
    """Return the mean held-out score; raises TrialPruned as soon as the trial lags behind the others. placed: the
    splits on the workers of a cluster, if they are fitted there."""
    optuna = import_optuna()

    def after_epoch(fold: int, row: dict[str, float]) -> None:
        if "valid_error" in row:
            trial.report(-row["valid_error"], STEPS_PER_FOLD * fold + int(row["epoch"]))
            if trial.should_prune():
                raise optuna.TrialPruned

    # Given validation sequences also decide when learning stops; a fold only scores, and the fit holds back sequences
    # of its own.
    stopping = len(splits) == 1 and _stops_early(estimator)
    score = partial(_score_of_fold, estimator, scoring, stopping)
    if placed is not None:
        return float(np.mean(_FoldsOnWorkers(len(splits), after_epoch).scores(score, placed)))
    with warnings.catch_warnings():  # poor trials are the nature of a search; the final fit warns
        warnings.simplefilter("ignore", UserWarning)
        return float(np.mean([score(split, partial(after_epoch, fold)) for fold, split in enumerate(splits)]))


def _score_of_fold(
    estimator: BaseEstimator,
    scoring: Scoring | None,
    stopping: bool,
    split: tuple[Part, Part],
    callback: Callable[[dict[str, float]], None],
) -> float:
    """Fit the estimator to one part of a split, and return its score on the other."""
    train, held_out = split
    prefix = pipeline_prefix(estimator)
    how: dict[str, object] = {} if answers_per_series(estimator) else {f"{prefix}callback": callback}
    if stopping:
        how["validation"] = held_out
    estimator.fit(*train, **how)
    return scoring(estimator, *held_out) if scoring else estimator.score(*held_out)


class _FoldsOnWorkers:
    """The folds of a trial, each fitted and scored by one thread of a worker. Their epochs reach the trial in the order
    in which one process would fit the folds, so that it is stopped early by the same epoch."""

    def __init__(self, count: int, after_epoch: Callable[[int, dict[str, float]], None]):
        self.after_epoch, self.stop, self.failed = after_epoch, Event(), Event()
        self.pruned: BaseException | None = None
        self.rows: list[dict[tuple[float, float], dict[str, float]]] = [{} for _ in range(count)]
        self.ended: set[int] = set()
        self.fold = self.passed_on = 0  # where the trial is: in this fold, after so many of its epochs

    def scores(self, score: Callable[..., float], splits: Dataset) -> list[float]:
        """Return score(split, callback) of every split on the workers."""
        assert isinstance(splits.executor, cluster.ClusterExecutor)
        dealer = cluster.Dealer(splits.executor, self.receive, stop=self.stop, failed=self.failed)
        found = dealer.deal(partial(_score_on_this_worker, score), [splits], len(self.rows))
        if self.stop.is_set():
            raise KeyboardInterrupt
        if self.pruned is not None:
            raise self.pruned
        return found

    def receive(self, number: int, row: dict[str, float] | None) -> bool:
        """Note an epoch of a fold, or its end (None); return whether the fold is not wanted any more."""
        if row is None:
            self.ended.add(number)
        else:
            self.rows[number].setdefault((row.get("network", 0), row["epoch"]), row)
        try:
            while self.pruned is None and self.fold < len(self.rows):
                for row in list(self.rows[self.fold].values())[self.passed_on :]:
                    self.passed_on += 1
                    self.after_epoch(self.fold, row)
                if self.fold not in self.ended:
                    break
                self.fold, self.passed_on = self.fold + 1, 0
        except import_optuna().TrialPruned as found:
            self.pruned = found
        return self.pruned is not None or self.stop.is_set() or self.failed.is_set()


def _score_on_this_worker(
    score: Callable[..., float], number: int, datasets: list[Dataset], report: cluster.Report
) -> float:
    """Return the score of a fold on one thread of this worker; NaN if it is not wanted any more."""

    def after_epoch(row: dict[str, float]) -> None:
        if "valid_error" in row and report(row):
            raise AbandonedError

    with executing_on(LOCAL), cluster.warnings_to(lambda category, text: None):
        try:
            found = score(datasets[0].X[number], after_epoch)
        except AbandonedError:
            return np.nan
    report(None)
    return found


class _Progress(Bar):
    """A bar over trials, where `verbose`."""

    def __init__(self, study: optuna.Study, trials: int, verbose: int):
        super().__init__(trials, shown=verbose > 0, every_line=verbose > 1)
        self.study = study
        self.started, self.earlier = time.perf_counter(), self.finished
        if self.shown and self.earlier:
            show_line(f"resuming after {self.earlier} finished trials")

    @property
    def finished(self) -> int:
        return sum(t.state.name in FINISHED_STATES for t in self.study.trials)

    def show_last(self) -> None:
        if not self.shown:
            return
        last, finished = self.study.trials[-1], self.finished
        left = (time.perf_counter() - self.started) / (finished - self.earlier) * (self.total - finished)
        score = "stopped early" if last.value is None else f"score {last.value:.4f}"
        best = self.study.best_value
        text = f"trial {finished}/{self.total}  {score}  best {best:.4f}  {clock(left)} left"
        self.step(finished, text, {"best score": best})


# The record of a search in Optuna's terms


FINISHED_STATES = ("COMPLETE", "PRUNED")
CONSTANT_TYPES = (bool, int, float, str, bytes, tuple, partial, FunctionType, type(None))
STEPS_PER_FOLD = 100_000  # Optuna knows one kind of step: epoch e of fold f is step STEPS_PER_FOLD * f + e


def import_optuna() -> ModuleType:
    """Return Optuna, or raise an ImportError that says how to install it."""
    try:
        import optuna
    except ImportError as problem:
        raise ImportError("tuning needs Optuna; install it with: pip install 'echolearn[tune]'") from problem
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    module: ModuleType = optuna
    return module


@contextmanager
def opened_study(
    storage: str | Path | None, random_state: int, description: Mapping[str, object]
) -> Iterator[optuna.Study]:
    """Yield the study that `storage` holds, or a new one whose first trial has the values of `description["own"]`;
    ValueError where it holds a search of another description."""
    optuna = import_optuna()
    with ExitStack() as stack:
        opened = None  # in memory
        if storage is not None:
            path = check_path("storage", storage)
            if not path.absolute().parent.is_dir():
                raise ValueError(f"storage={storage}: its folder does not exist.")
            opened = optuna.storages.RDBStorage(f"sqlite:///{path}")
            stack.callback(opened.engine.dispose)
            stack.callback(opened.remove_session)
        study = optuna.create_study(direction="maximize", storage=opened, study_name="echolearn", load_if_exists=True)
        plain: Description = json.loads(json.dumps(description, default=str))
        _check_description(study, plain, storage)
        if not any(t.state.name in (*FINISHED_STATES, "WAITING") for t in study.trials):
            study.enqueue_trial(plain["own"])
        # The seed depends on the number of trials: a resumed search must not propose its first trials again.
        study.sampler = optuna.samplers.TPESampler(seed=(random_state + len(study.trials)) % 2**32)
        study.pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2)
        yield study


def _check_description(study: optuna.Study, description: Description, storage: str | Path | None) -> None:
    stored = study.user_attrs.get("about")
    if stored is None:
        study.set_user_attr("about", description)
    elif stored != description:
        names = ", ".join(name for name in description if stored.get(name) != description[name])
        raise ValueError(
            f"{storage} holds another search: {names} differ. Use the same estimator, data and space to resume it, or "
            "another file to start a new search."
        )


def finished_trials(study: optuna.Study, space: Mapping[str, Options]) -> list[Trial]:
    """Return the finished trials of a study, numbered in order."""
    found: list[Trial] = []
    for trial in study.trials:
        if trial.state.name not in FINISHED_STATES:
            continue
        values = {name: _value(trial.params[name], options) for name, options in space.items()}
        curve = tuple(-v for step, v in sorted(trial.intermediate_values.items()) if step < STEPS_PER_FOLD)
        score = trial.value if trial.state.name == "COMPLETE" else None
        found.append(Trial(len(found), values, score, trial.duration.total_seconds(), curve))
    return found


def _value(stored: Any, options: Options) -> object:
    return options[stored] if isinstance(options, list) else stored
