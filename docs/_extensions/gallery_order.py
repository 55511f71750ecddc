"""The order of the gallery: that of the links of its overview, examples/README.rst."""

from __future__ import annotations

from pathlib import Path

OVERVIEW = Path(__file__).parents[2] / "examples" / "README.rst"


class OverviewOrder:
    """Sort examples by their place in the overview.

    Parameters
    ----------
    src_dir : str
        The folder of the examples, which sphinx-gallery hands in. It is not needed.
    """

    def __init__(self, src_dir: str) -> None:
        self.overview = OVERVIEW.read_text(encoding="utf-8")

    def __call__(self, filename: str) -> int:
        """Return where an example is linked; tests/test_examples.py checks that each one is."""
        return self.overview.find(f"<sphx_glr_gallery_{Path(filename).name}>")
