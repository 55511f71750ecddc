"""Print the entries of requirements.lock for some packages, with their hashes.

    python tools/locked_subset.py numpy click > light.txt
    pip install --require-hashes -r light.txt

pip refuses a file of hashes that lacks a package which another one needs, so that nothing is installed unlocked.
"""

import re
import sys
from pathlib import Path


def subset(lock: str, names: list[str]) -> str:
    """Return the entries of these packages; all of those that have several, for different versions of Python."""
    entries = re.split(r"\n(?=\S)", lock.strip())
    named = {name: [e for e in entries if re.match(rf"{re.escape(name)}\s*==", e)] for name in names}
    if missing := [name for name, found in named.items() if not found]:
        raise SystemExit(f"requirements.lock has no {', '.join(missing)}: make lock")
    return "\n".join(entry for found in named.values() for entry in found) + "\n"


if __name__ == "__main__":
    print(subset((Path(__file__).parents[1] / "requirements.lock").read_text(), sys.argv[1:]), end="")
