"""The pictures of the examples as files.

    python tools/pictures.py [--out runs/examples] [examples/plot_streaming.py ...]

Runs each example and saves its figures as NAME.png, NAME_2.png and so on. Needs the extra `docs`.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")

from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]


def draw(example: Path, folder: Path, *, dpi: int = 100) -> list[Path]:
    """Run an example and save its figures; return their files."""
    plt.close("all")
    with matplotlib.rc_context():
        runpy.run_path(str(example), run_name="__main__")
    name = example.stem.removeprefix("plot_")
    files = []
    for place, number in enumerate(plt.get_fignums(), start=1):
        files.append(folder / (f"{name}.png" if place == 1 else f"{name}_{place}.png"))
        plt.figure(number).savefig(files[-1], dpi=dpi)
    return files


def main(arguments: list[str] | None = None) -> int:
    """Save the pictures; return 1 if an example draws nothing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("examples", nargs="*", type=Path, help="the examples; all by default")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "examples", help="the folder of the pictures")
    parser.add_argument("--dpi", type=int, default=100, help="dots per inch; a figure is about ten inches wide")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    empty = 0
    for example in given.examples or sorted((ROOT / "examples").glob("plot_*.py")):
        files = draw(example, given.out, dpi=given.dpi)
        empty += not files
        print(f"{example.name}: {', '.join(file.name for file in files) or 'nothing was drawn'}", flush=True)
    return min(empty, 1)


if __name__ == "__main__":
    sys.exit(main())
