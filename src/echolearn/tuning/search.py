"""The search for settings: trials proposed by Optuna, scored on held-out sequences, stopped early when they lag.

from echolearn.tuning import tune
found = tune(ESNClassifier(100), X, y, trials=40, storage="search.sqlite")
found.estimator.predict(X_new)
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from echolearn.modelfile.checkpoint import fingerprint
from echolearn.sequences.batch import Data
from echolearn.sequences.validation import Given, open_sequences, open_targets
from echolearn.training.optimizers import default_step
from echolearn.training.progress import clock
from echolearn.validation.names import check_name
from echolearn.validation.values import check_integer, check_pair, check_path

Scoring = Callable[[Any, Any, Any], float]
Space = Mapping[str, tuple[float, float] | Sequence[Any]]
Split = tuple[tuple[Any, Any], tuple[Any, Any]]

# A pair is searched evenly in its logarithm, a list is a choice. Ridge and penalty are not here: fit chooses them.
FIXED: Space = {
    "spectral_radius": (0.2, 1.0),
    "input_scaling": (0.01, 2.0),
    "bias_scaling": (0.01, 1.0),
    "leak": [(0.03, 0.9), (0.1, 1.0), (0.3, 1.0), 1.0],
}
LEARNED: Space = {**FIXED, "step_size": (0.001, 0.03)}
FINISHED = ("COMPLETE", "PRUNED")
FOLD = 100_000  # steps of a trial are told apart by fold: FOLD * fold + epoch


@dataclass(frozen=True)
class Trial:
    """One try. score is None where it was stopped early; curve: held-out errors after the epochs of its first fold."""

    number: int
    settings: dict[str, Any]
    score: float | None
    seconds: float
    curve: tuple[float, ...] = ()


@dataclass(frozen=True)
class Tuning:
    """What a search found: `best_settings`, with `best_score`, out of `trials`; `estimator` is fitted with them on all
    data."""

    trials: list[Trial]
    space: dict[str, Any]
    estimator: Any = field(default=None, repr=False)

    @property
    def best(self) -> Trial:
        finished = [t for t in self.trials if t.score is not None]
        if not finished:
            raise ValueError("no trial has a finite score; look at the space, or fit the estimator once as it is.")
        return max(finished, key=lambda t: (t.score, -t.number))

    @property
    def best_settings(self) -> dict[str, Any]:
        return self.best.settings

    @property
    def best_score(self) -> float:
        assert self.best.score is not None
        return self.best.score

    def report(self, path: str | Path) -> None:
        """One self-contained HTML page: best settings, pictures of the search, every trial."""
        from echolearn.modelfile.atomic import write_atomically
        from echolearn.reporting.tuning_page import page

        write_atomically(Path(path), page(self).encode())


def tune(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    space: Space | None = None,
    trials: int = 30,
    validation: tuple[Any, Any] | None = None,
    folds: int = 3,
    scoring: Scoring | None = None,
    storage: str | Path | None = None,
    refit: bool = True,
    random_state: int = 0,
    verbose: int = 0,
) -> Tuning:
    """Searches `space` for the settings with the greatest held-out score.

    estimator: a network, or a Pipeline that ends in one. space: a pair (low, high) is searched evenly in its
    logarithm, a list is a choice. Trials are scored on `validation=(X, y)`, or as the mean over `folds` folds of the
    sequences, by `estimator.score` or `scoring(estimator, X, y)`; the first trial has the estimator's own settings.
    storage: a file where every finished trial is kept; the same search, started again, goes on from there.
    """
    optuna = _optuna()
    _check(estimator, trials, validation, folds, scoring, random_state)
    space = checked_space(estimator, space)
    splits = _splits(estimator, X, y, validation, folds, random_state)
    about = _about(estimator, X, y, validation, folds, scoring, space)
    with _kept(optuna, storage) as kept:
        study = _study(optuna, kept, storage, random_state, about)
        progress = _Progress(study, trials, verbose)
        while progress.done < trials:
            _try_one(optuna, study, estimator, space, splits, scoring)
            progress.say()
        found = Tuning(_trials(study, space), dict(space))
    if not refit:
        return found
    best = _with(estimator, found.best_settings)
    best.fit(X, y, **({"validation": validation} if validation is not None and not _prefix(estimator) else {}))
    return Tuning(found.trials, found.space, best)


def _try_one(optuna: Any, study: Any, estimator: Any, space: Space, splits: Any, scoring: Scoring | None) -> None:
    """A trial from its settings to its score; one that lags or has no finite score is pruned."""
    trial = study.ask()
    try:
        values = {name: _suggest(trial, name, options) for name, options in space.items()}
        score = _score(optuna, trial, _with(estimator, values), splits, scoring)
        if not np.isfinite(score):
            raise optuna.TrialPruned
    except optuna.TrialPruned:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    except BaseException:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        raise
    else:
        study.tell(trial, score)


def _check(
    estimator: Any, trials: int, validation: Any, folds: int, scoring: Scoring | None, random_state: int
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


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as problem:
        raise ImportError("tuning needs Optuna; install it with: pip install 'echolearn[tune]'") from problem
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _prefix(estimator: Any) -> str:
    """What a Pipeline puts before the names of its last step's settings."""
    return f"{estimator.steps[-1][0]}__" if hasattr(estimator, "steps") else ""


def checked_space(estimator: Any, space: Space | None) -> Space:
    """Names as the estimator has them, every range possible."""
    known, prefix = estimator.get_params(), _prefix(estimator)
    if space is None:
        space = FIXED if known[f"{prefix}learn"] == "none" or known[f"{prefix}epochs"] == 0 else LEARNED
    if not isinstance(space, Mapping):
        raise TypeError(f"space={space!r:.80}; expected ranges and choices by the names of settings.")
    full: dict[str, Any] = {}
    for name, options in space.items():
        own = name if name in known else prefix + name
        check_name(own, known, "space")
        pair = isinstance(options, tuple) and len(options) == 2 and all(isinstance(v, (int, float)) for v in options)
        if not (pair and 0 < options[0] <= options[1]) and not (isinstance(options, list) and options):
            raise ValueError(
                f"space: {name} is {options!r}; expected a pair (low, high) with 0 < low <= high, or a list of choices."
            )
        full[own] = options
    if not full:
        raise ValueError("space is empty; give at least one setting to search.")
    return full


def _suggest(trial: Any, name: str, options: Any) -> Any:
    if isinstance(options, list):
        return options[trial.suggest_categorical(name, list(range(len(options))))]
    low, high = options
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, log=True)
    return trial.suggest_float(name, low, high, log=True)


def _own_settings(estimator: Any, space: Space) -> dict[str, Any]:
    """The estimator's own settings, as far as the space has them, as Optuna knows them."""
    values: dict[str, Any] = {}
    params, prefix = estimator.get_params(), _prefix(estimator)
    if params.get(f"{prefix}step_size", 0) is None:
        step = default_step(params[f"{prefix}optimizer"], params[f"{prefix}hidden_units"])
        params[f"{prefix}step_size"] = step
    for name, options in space.items():
        own = params[name]
        if isinstance(options, list):
            if own in options:
                values[name] = options.index(own)
        elif isinstance(own, (int, float)) and options[0] <= own <= options[1]:
            values[name] = own
    return values


def _with(estimator: Any, values: dict[str, Any]) -> Any:
    return clone(estimator).set_params(**values)


def _splits(
    estimator: Any, X: Any, y: Any, validation: tuple[Any, Any] | None, folds: int, random_state: int
) -> list[Split]:
    """(train, held out) pairs."""
    if validation is not None:
        return [((X, y), validation)]
    given = open_sequences(X)
    entries, per_step = open_targets(y, given)
    if given.kind == "one" or folds < 2 or len(given.X) < folds:
        raise ValueError(
            f"{folds} folds of {len(given.X)} sequence(s): expected a list of sequences, at least as many as folds, "
            "and folds >= 2. Cut X into sequences, or give validation=(X, y)."
        )
    kind = StratifiedKFold if is_classifier(estimator) and not per_step else KFold
    cut = kind(folds, shuffle=True, random_state=random_state)

    def part(which: Any) -> tuple[Any, Any]:
        return [given.X[i] for i in which], [entries[i] for i in which]

    return [(part(train), part(test)) for train, test in cut.split(given.X, None if per_step else entries)]


def _score(optuna: Any, trial: Any, estimator: Any, splits: Sequence[Split], scoring: Scoring | None) -> float:
    """The mean held-out score; raises TrialPruned as soon as the trial lags behind the others."""
    prefix, scores = _prefix(estimator), []
    single = len(splits) == 1 and not prefix
    for fold, (train, held_out) in enumerate(splits):

        def after_epoch(row: dict[str, float], fold: int = fold) -> None:
            if "valid_error" in row:
                trial.report(-row["valid_error"], FOLD * fold + int(row["epoch"]))
                if trial.should_prune():
                    raise optuna.TrialPruned

        # A given validation part decides on stopping too; a fold only scores, and fit holds back sequences of its own.
        more = {"validation": held_out} if single else {}
        estimator.fit(*train, **{f"{prefix}callback": after_epoch}, **more)
        scores.append(scoring(estimator, *held_out) if scoring else estimator.score(*held_out))
    return float(np.mean(scores))


@contextmanager
def _kept(optuna: Any, storage: str | Path | None) -> Iterator[Any]:
    """What Optuna keeps trials in, or None for memory; closed in the end."""
    if storage is None:
        yield None
        return
    path = check_path("storage", storage)
    if not path.absolute().parent.is_dir():
        raise ValueError(f"storage={storage}: its folder does not exist.")
    kept = optuna.storages.RDBStorage(f"sqlite:///{path}")
    try:
        yield kept
    finally:
        kept.remove_session()
        kept.engine.dispose()


def _study(optuna: Any, kept: Any, storage: Any, random_state: int, about: dict[str, Any]) -> Any:
    study = optuna.create_study(direction="maximize", storage=kept, study_name="echolearn", load_if_exists=True)
    then = study.user_attrs.get("about")
    if then is None:
        study.set_user_attr("about", about)
    elif then != about:
        names = ", ".join(name for name in about if then.get(name) != about[name])
        raise ValueError(
            f"{storage} holds another search: {names} differ. Use the same estimator, data and space to go on, or "
            "another file to start anew."
        )
    if not any(t.state.name in (*FINISHED, "WAITING") for t in study.trials):
        study.enqueue_trial(about["own"])
    # Seeded by how far it has come: a search that goes on must not propose its first trials again.
    study.sampler = optuna.samplers.TPESampler(seed=(random_state + len(study.trials)) % 2**32)
    study.pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2)
    return study


def _about(
    estimator: Any,
    X: Any,
    y: Any,
    validation: tuple[Any, Any] | None,
    folds: int,
    scoring: Scoring | None,
    space: Space,
) -> dict[str, Any]:
    """What a search depends on, in plain values."""

    def digest(X: Any, y: Any) -> str:
        given: Given = open_sequences(X)
        entries, per_step = open_targets(y, given)
        return fingerprint(Data(given.X, [np.asarray(e).astype("U") for e in entries], None, per_step, None))

    params = {name: repr(value) for name, value in estimator.get_params().items() if not name.endswith("verbose")}
    about = {
        "estimator": params,
        "data": digest(X, y),
        "held out": f"{folds} folds" if validation is None else digest(*validation),
        "scoring": repr(scoring) if hasattr(scoring, "name") else getattr(scoring, "__qualname__", None),
        "space": {name: list(options) for name, options in space.items()},
        "own": _own_settings(estimator, space),
    }
    plain: dict[str, Any] = json.loads(json.dumps(about, default=str))
    return plain


def _trials(study: Any, space: Space) -> list[Trial]:
    found: list[Trial] = []
    for t in study.trials:
        if t.state.name not in FINISHED:
            continue
        values = {n: options[t.params[n]] if isinstance(options, list) else t.params[n] for n, options in space.items()}
        curve = tuple(-v for step, v in sorted(t.intermediate_values.items()) if step < FOLD)
        score = t.value if t.state.name == "COMPLETE" else None
        found.append(Trial(len(found), values, score, t.duration.total_seconds(), curve))
    return found


class _Progress:
    """A line a trial, where asked for."""

    def __init__(self, study: Any, trials: int, verbose: int):
        self.study, self.trials, self.verbose = study, trials, verbose
        self.started, self.first = time.perf_counter(), self.done
        if verbose and self.first:
            print(f"{self.first} trials kept from before", file=sys.stderr, flush=True)

    @property
    def done(self) -> int:
        return sum(t.state.name in FINISHED for t in self.study.trials)

    def say(self) -> None:
        if not self.verbose:
            return
        last, done = self.study.trials[-1], self.done
        left = (time.perf_counter() - self.started) / (done - self.first) * (self.trials - done)
        score = "stopped early" if last.value is None else f"score {last.value:.4f}"
        print(
            f"trial {done}/{self.trials}  {score}  best {self.study.best_value:.4f}  {clock(left)} left",
            file=sys.stderr,
            flush=True,
        )
