"""Small fits that together use every part of the package; every weight and prediction goes into one .npz file.

    python cases.py --source SRC --out RESULTS.npz --handover FOLDER [--write-handover] [--only TEXT]

`reliability.same_bits.compare` runs this file under two commits and compares the results. It and the modules beside it
therefore use the public API only, which `basis.public` finds wherever a commit has it, apart from two module constants
(`basis.CONSTANTS`). Both commits read the models and checkpoints that the first one writes into the handover folder.
A case that raises an exception is recorded as failed, and the other cases still run.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from basis import CASES, Killed, Run, flat

import echolearn

MODULES = ("fits", "forecasts", "exports", "analyses", "speech", "commands")  # each adds its cases to CASES
FAILURE = "failure"  # name of the only array of a case that raised an exception


def placeless(array: Any, run: Run) -> Any:
    """A number, or a text without the folders of this run."""
    if array.dtype.kind != "U":
        return array
    return np.asarray(str(array).replace(str(run.handover), "HANDOVER").replace(str(run.work.parent), "WORK"))


def recorded(name: str, run: Run) -> dict[str, Any]:
    """The arrays of one case, or the text of the exception that it raised."""
    try:
        return {key: array if array.ndim else placeless(array, run) for key, array in flat(name, CASES[name](run))}
    except (Exception, Killed, KeyboardInterrupt):
        return {f"{name}/{FAILURE}": np.asarray(traceback.format_exc())}


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the cases of the echolearn in SOURCE and write their results.")
    parser.add_argument("--source", type=Path, required=True, help="folder that echolearn must be imported from")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--handover", type=Path, required=True)
    parser.add_argument("--write-handover", action="store_true")
    parser.add_argument("--only", default="", help="run only the cases whose names contain this text")
    given = parser.parse_args()
    if given.source.resolve() not in Path(str(echolearn.__file__)).resolve().parents:
        sys.exit(f"echolearn was imported from {echolearn.__file__}; expected a module in {given.source}.")
    for module in MODULES:
        importlib.import_module(module)
    arrays: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="echolearn-same-bits-") as work:
        for name in [name for name in CASES if given.only in name]:
            begun, folder = time.monotonic(), Path(work) / name
            folder.mkdir()
            arrays |= (found := recorded(name, Run(folder, given.handover, given.write_handover)))
            failed = "  FAILED" if f"{name}/{FAILURE}" in found else ""
            print(f"  {time.monotonic() - begun:5.1f} s  {name}{failed}", flush=True)
    np.savez(given.out, **arrays)


if __name__ == "__main__":
    main()
