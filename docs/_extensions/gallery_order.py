"""The order of the gallery: that of the links of its overview, examples/README.rst."""

from __future__ import annotations

from pathlib import Path


class OverviewOrder:
    """Sort examples by their place in the overview.

    Parameters
    ----------
    src_dir : str
        The folder of the examples.
    """

    def __init__(self, src_dir: str) -> None:
        self.overview = (Path(src_dir) / "README.rst").read_text(encoding="utf-8")

    def __call__(self, filename: str) -> int:
        """Return where an example is linked."""
        return self.overview.index(f"<sphx_glr_gallery_{Path(filename).name}>")
