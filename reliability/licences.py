"""The licences of everything that `make test` installs, from the packages' metadata: makes docs/reference/licences.md.

python -m reliability.licences > docs/reference/licences.md
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
TOOLS = ("hatchling", "editables")  # what builds the package
# Locked packages that only other systems install, by the metadata of their wheels.
ELSEWHERE = {
    "appnope": "BSD-2-Clause",
    "colorama": "BSD License",
    "httpx2-jsfetch": "BSD-3-Clause",
    "pywin32-ctypes": "BSD-3-Clause",
}
# Libraries inside wheels whose metadata do not name their licences.
INSIDE = """\
Some wheels bring libraries of their own: NumPy and SciPy OpenBLAS (BSD-3-Clause) and the run-time of GNU Fortran
(GPL-3.0 with the exception that lets any program use it), soundfile libsndfile (LGPL-2.1), llvmlite LLVM (Apache-2.0
with exception), espeakng-loader espeak-ng (GPL-3.0; only the extra `speech` requires it, and it is loaded only to make
synthetic speech). None of them is part of echolearn's own files. Where the metadata name no licence, the first line of
the licence file is listed: kaldiio may be used for evaluation only, and nothing but tests imports it."""


def licence(name: str) -> str:
    """Return the licence expression if there is one, else the classifiers, else the first line of the licence."""
    about = metadata.metadata(name)
    if expression := about.get("License-Expression"):
        return str(expression)
    named = [c.split(" :: ")[-1] for c in about.get_all("Classifier", []) if c.startswith("License ::")]
    named = [n for n in named if n != "OSI Approved"]
    files = [f for f in metadata.files(name) or [] if f.name.upper().startswith(("LICEN", "COPYING"))]
    text = about.get("License") or (files[0].locate().read_text(encoding="utf-8") if files else "")
    first = str(text).strip().splitlines()
    return ", ".join(named) or (first[0][:60] if first else "not named")


def closure(names: list[str]) -> set[str]:
    """Return these packages and all that they need here, by canonical name."""
    found: set[str] = set()
    waiting = [canonicalize_name(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # needed only on other systems or Pythons
        found.add(name)
        required = [Requirement(need) for need in needs]
        waiting += [canonicalize_name(r.name) for r in required if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


def main() -> None:
    """Print the page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"the library": project["dependencies"], **project["optional-dependencies"], "the build": list(TOOLS)}
    used: dict[str, list[str]] = {}
    for group, lines in groups.items():
        for name in closure([Requirement(line).name for line in lines]):
            used.setdefault(name, []).append(group)
    print("# Licences of what echolearn installs\n")
    print("echolearn itself is BSD-3-Clause. `python -m reliability.licences` prints this table from the metadata of")
    print("the packages that `make test` installs (`requirements.lock`). `for` says what needs a package: the library")
    print("itself, or only some of its extras.\n")
    print("| package | version | licence | for |\n|---|---|---|---|")
    for name in sorted(used, key=lambda name: ("the library" not in used[name], name)):
        needed = "the library" if "the library" in used[name] else ", ".join(used[name])
        words = re.sub(r"\s+", " ", licence(name))
        print(f"| {name} | {metadata.version(name)} | {words} | {needed} |")
    lock = (ROOT / "requirements.lock").read_text()
    for name, words in ELSEWHERE.items():
        version = re.search(rf"^{name}==(\S+)", lock, re.M)
        print(f"| {name} | {version[1].rstrip(';') if version else 'no longer locked'} | {words} | other systems |")
    print(f"\n{INSIDE}")


if __name__ == "__main__":
    main()
