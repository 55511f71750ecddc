"""The plan of Table 1: which networks its columns have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from echolearn.estimators.classifier import ESNClassifier
from echolearn.experiments.levels import LEVELS
from echolearn.fitting import settings

Settings = Mapping[str, Any]  # parameters of ESNClassifier

DEMO_FRAMES = 35_000
# The paper's scale.
FULL_FRAMES = 1_124_823
FULL_UNITS = (100, 500, 2_000, 10_000, 30_000)
FULL_EPOCHS = 40
# In the ensemble columns a network has about so many units: on held-out speech 2 x 250 learned units beat 1 x 500, and
# 1 x 300 beat 3 x 100. There are two networks at least, as one would be the column of single networks again.
ENSEMBLE_UNITS = 250
LEAST_ENSEMBLE = 2


@dataclass(frozen=True)
class Column:
    """A column of the table: the paper's settings or, without `paper`, our defaults, with `changes`.

    ensemble: whether the units are split into networks of about `ENSEMBLE_UNITS` that answer by their mean; without it
    a column has single networks.
    """

    paper: bool
    changes: Settings
    ensemble: bool = False

    def networks(self, units: int) -> int:
        """Return into how many networks so many units are split."""
        return max(LEAST_ENSEMBLE, round(units / ENSEMBLE_UNITS)) if self.ensemble else 1


COLUMNS: dict[str, Column] = {
    "esn": Column(True, {"learn": "none"}),
    "W_m1": Column(True, {"learn": "input", "lookback": 1}),
    "W_Wrec_m1": Column(True, {"learn": "both", "lookback": 1}),
    "W_Wrec_m3": Column(True, {"learn": "both", "lookback": 3}),
    "W_Wrec_full": Column(True, {"learn": "both", "lookback": None}),
    "esn_ours": Column(False, {"learn": "none"}),
    "ours": Column(False, {}),
    "esn_ours_ensemble": Column(False, {"learn": "none"}, ensemble=True),
    "ours_ensemble": Column(False, {}, ensemble=True),
}
# The columns of a quick table; the ensembles are computed where they are named, and with --full.
SINGLE_COLUMNS = tuple(name for name, column in COLUMNS.items() if not column.ensemble)


@dataclass(frozen=True)
class Cell:
    """One network of the table."""

    units: int
    column: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.column}-{self.units}-{self.seed}"


@dataclass(frozen=True)
class Plan:
    """What to compute.

    Attributes
    ----------
    units : tuple of int
        Numbers of hidden units, one row of the table each.
    seeds : int
        How many networks, with seeds from 0, are averaged in each cell of the table.
    epochs : int
        Epochs of the paper's columns; ours take as many as the data need.
    targets : str
        "all", or "last": only the last frame of each block has a target, as in the paper. Both this and `gradient` are
        for the columns that the paper has formulas for (m = 1 and 3).
    gradient : str
        "exact", or "printed": the paper's formulas as printed.
    columns : tuple of str
        Which columns, of `COLUMNS`; by default those of single networks.
    paper : mapping
        Parameters of `ESNClassifier` that replace the paper's in its columns.
    level : str
        At which level errors are counted, of `LEVELS`; networks do not depend on it.
    ours : mapping
        Parameters of `ESNClassifier` that replace our defaults in our columns; `ensemble`, which must be 2 or more, in
        those of ensembles only.
    """

    units: tuple[int, ...] = (100, 500)
    seeds: int = 1
    epochs: int = 20
    targets: str = "all"
    gradient: str = "exact"
    columns: tuple[str, ...] = SINGLE_COLUMNS
    level: str = "state"
    paper: Settings = field(default_factory=dict)
    ours: Settings = field(default_factory=dict)

    def estimator(self, cell: Cell) -> ESNClassifier:
        """Return the network of a cell, not fitted."""
        column = COLUMNS[cell.column]
        changes: dict[str, Any] = {"random_state": cell.seed, **column.changes}
        if not column.paper:
            changes |= {"ensemble": column.networks(cell.units), **self.ours, **column.changes}
            return ESNClassifier(cell.units, **(changes if column.ensemble else {**changes, "ensemble": 1}))
        if changes["learn"] != "none":  # a fixed network is the same however many epochs the others take
            changes |= {"epochs": self.epochs}
        if changes.get("lookback") is not None:
            changes |= {"targets": self.targets, "gradient": self.gradient}
        return ESNClassifier.paper(cell.units, **{**changes, **self.paper, **column.changes})

    def cells(self) -> list[Cell]:
        """Return all cells, small networks first, so that the first rows are soon complete."""
        return [Cell(n, c, s) for n in self.units for c in self.columns for s in range(self.seeds)]

    def check(self) -> None:
        """Check every setting of every cell, before the first is fitted."""
        unknown = [c for c in self.columns if c not in COLUMNS]
        if unknown or not self.columns:
            raise ValueError(f"columns: {', '.join(unknown) or 'none'}; expected some of {', '.join(COLUMNS)}.")
        if self.level not in LEVELS:
            raise ValueError(f"level is {self.level!r}; expected one of {', '.join(LEVELS)}.")
        if not self.units or self.seeds < 1:
            raise ValueError(f"units={self.units}, seeds={self.seeds}; expected at least one of each.")
        if self.ours.get("ensemble", LEAST_ENSEMBLE) == 1 and any(COLUMNS[c].ensemble for c in self.columns):
            raise ValueError("[ours] ensemble=1: the columns of ensembles would be those of single networks again; "
                             "leave them out of the columns.")  # fmt: skip
        for cell in self.cells():
            settings.check(self.estimator(cell).get_params(deep=False))


def quick_plan(
    units: tuple[int, ...] | None = None, epochs: int | None = None, columns: tuple[str, ...] | None = None
) -> Plan:
    """Return the plan with these rows, epochs and columns ("all": every one), the rest for a few minutes."""
    return Plan(
        units=units or Plan.units,
        epochs=epochs or Plan.epochs,
        columns=tuple(COLUMNS) if columns == ("all",) else columns or Plan.columns,
    )


def full_plan(
    units: tuple[int, ...] | None = None, epochs: int | None = None, columns: tuple[str, ...] | None = None
) -> Plan:
    """Return the same plan, with what is not given at the paper's scale."""
    return quick_plan(units or FULL_UNITS, epochs or FULL_EPOCHS, columns or ("all",))
