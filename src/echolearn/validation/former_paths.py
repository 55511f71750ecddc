"""Short import paths, some from before the packages existed: `from echolearn.online import RLS` works.

Each former module name stands for the module that holds its contents now.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

FORMER = {
    "echolearn.activations": "echolearn.reservoir.activations",
    "echolearn.conceptors": "echolearn.reservoir.conceptors",
    "echolearn.framewise": "echolearn.estimators.framewise",
    "echolearn.online": "echolearn.readout.online",
    "echolearn.plasticity": "echolearn.reservoir.plasticity",
    "echolearn.streams": "echolearn.estimators.streams",
    "echolearn.topologies": "echolearn.reservoir.topologies",
}


class FormerPaths(MetaPathFinder, Loader):
    """Finds a former module name and loads the module that it stands for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in FORMER else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(FORMER[spec.name])
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has replaced it by the former name's
