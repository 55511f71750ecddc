"""The results of a search: its trials, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from echolearn.display.facts import one_line
from echolearn.modelfile.atomic import write_atomically
from echolearn.reporting.tuning_page import search_summary, tuning_page
from echolearn.tuning.space import Options

Settings = dict[str, Any]  # values of the types that the estimator's parameters have


@dataclass(frozen=True)
class Trial:
    """One trial of a search: an estimator fitted and scored with certain settings.

    Attributes
    ----------
    number : int
        The index of the trial, from 0. Trial 0 has the estimator's own settings.
    settings : dict
        The value of every setting that was searched.
    score : float or None
        The score on held-out sequences, averaged over folds; greater is better. None if the trial was stopped early or
        its score was not finite.
    seconds : float
        The time that the trial took.
    curve : tuple of float
        The held-out error after each epoch of the first fold. Empty for networks whose weights are not learned.

    Examples
    --------
    >>> from echolearn.tuning import Trial
    >>> Trial(0, {"leak": 0.3}, score=0.9, seconds=1.5).settings["leak"]
    0.3
    """

    number: int
    settings: Settings
    score: float | None
    seconds: float
    curve: tuple[float, ...] = ()


@dataclass(frozen=True)
class Tuning:
    """The result of `tune`: all trials, the best settings, and the fitted estimator.

    Attributes
    ----------
    trials : list of Trial
        Every finished trial, in order.
    space : dict
        The range or the choices of every setting that was searched, by the setting's name in the estimator.
    estimator : estimator or None
        The estimator with the best settings, fitted on all of `X` and `y`. None with `refit=False`.

    Examples
    --------
    >>> from echolearn.tuning import Trial, Tuning
    >>> first, second = Trial(0, {"leak": 0.3}, 0.8, 1.0), Trial(1, {"leak": 1.0}, 0.9, 1.0)
    >>> found = Tuning([first, second], {"leak": [0.3, 1.0]})
    >>> found.best_settings, found.best_score
    ({'leak': 1.0}, 0.9)
    >>> found.summary()
    'best of 2 trials: 0.9000 held out (trial 2), the initial settings 0.8000; 0 trials were stopped early.'
    """

    trials: list[Trial]
    space: dict[str, Options]
    estimator: BaseEstimator = field(default=None, repr=False)

    def __repr__(self) -> str:
        finished = any(trial.score is not None for trial in self.trials)
        return one_line(self, [self.summary().rstrip(".") if finished else "no finished trials"])

    @property
    def best(self) -> Trial:
        """The trial with the greatest score; the first of them if several have it."""
        finished = [t for t in self.trials if t.score is not None]
        if not finished:
            raise ValueError("no trial has a finite score; check the space, or fit the estimator once as it is.")
        return max(finished, key=lambda t: (t.score, -t.number))

    @property
    def best_settings(self) -> Settings:
        """The settings of the best trial."""
        return self.best.settings

    @property
    def best_score(self) -> float:
        """The score of the best trial. It is optimistic, because it is the greatest of many scores."""
        assert self.best.score is not None
        return self.best.score

    def summary(self) -> str:
        """Return the result in one sentence.

        Returns
        -------
        str
            The best score, the score of the initial settings, and how many trials were stopped early.
        """
        return search_summary(self.trials, self.best)

    def report(self, path: str | Path, data: str = "") -> None:
        """Write one self-contained HTML page: the best settings, a figure of the search, and every trial.

        The figure needs matplotlib (`pip install 'echolearn[report]'`); without matplotlib the page has no figure.

        Parameters
        ----------
        path : str or Path
            The file to write, or to replace.
        data : str, default ""
            A name of the data, shown on the page.
        """
        logarithmic = [name for name, options in self.space.items() if isinstance(options, tuple)]
        write_atomically(Path(path), tuning_page(self.trials, self.best, logarithmic, data).encode())
