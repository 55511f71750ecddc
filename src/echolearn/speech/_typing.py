"""Types that several modules of this package use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Frames = NDArray[np.float32]  # (frames, columns)
Labels = NDArray[np.int16]  # (frames,)
Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, how much there is
