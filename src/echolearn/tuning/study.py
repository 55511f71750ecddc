"""The record of a search in Optuna's terms: a study, in memory or in an SQLite file that a later search resumes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from echolearn.tuning.results import Trial
from echolearn.tuning.space import Options
from echolearn.validation import check_path

if TYPE_CHECKING:  # optional
    import optuna

FINISHED = ("COMPLETE", "PRUNED")
STEPS_PER_FOLD = 100_000  # Optuna knows one kind of step: epoch e of fold f is step STEPS_PER_FOLD * f + e
Description = dict[str, Any]  # JSON


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
    """Yield the study that `storage` holds, or a new one; ValueError where it holds a search of another description.

    `description["own"]` holds the values of the first trial.
    """
    optuna = import_optuna()
    with _opened_storage(storage) as opened:
        study = optuna.create_study(direction="maximize", storage=opened, study_name="echolearn", load_if_exists=True)
        plain: Description = json.loads(json.dumps(description, default=str))
        _check_description(study, plain, storage)
        if not any(t.state.name in (*FINISHED, "WAITING") for t in study.trials):
            study.enqueue_trial(plain["own"])
        # The seed depends on the number of trials: a resumed search must not propose its first trials again.
        study.sampler = optuna.samplers.TPESampler(seed=(random_state + len(study.trials)) % 2**32)
        study.pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2)
        yield study


@contextmanager
def _opened_storage(storage: str | Path | None) -> Iterator[optuna.storages.BaseStorage | None]:
    """Yield Optuna's storage, closed afterwards; None for memory."""
    if storage is None:
        yield None
        return
    path = check_path("storage", storage)
    if not path.absolute().parent.is_dir():
        raise ValueError(f"storage={storage}: its folder does not exist.")
    opened = import_optuna().storages.RDBStorage(f"sqlite:///{path}")
    try:
        yield opened
    finally:
        opened.remove_session()
        opened.engine.dispose()


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
        if trial.state.name not in FINISHED:
            continue
        values = {name: _value(trial.params[name], options) for name, options in space.items()}
        curve = tuple(-v for step, v in sorted(trial.intermediate_values.items()) if step < STEPS_PER_FOLD)
        score = trial.value if trial.state.name == "COMPLETE" else None
        found.append(Trial(len(found), values, score, trial.duration.total_seconds(), curve))
    return found


def _value(stored: Any, options: Options) -> object:
    return options[stored] if isinstance(options, list) else stored
