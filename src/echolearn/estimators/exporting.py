"""The method `export` of the estimators: the one call from here to a package above, which is loaded when it is made.

A method is where people look for it; what is exported, and how, only `echolearn.export` knows.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted


class ExportMixin:
    """Gives an estimator the method `export`."""

    def export(
        self,
        path: str | PathLike[str],
        *,
        name: str = "esn",
        step: bool = False,
        numbers: str | None = None,
        X: ArrayLike | None = None,
    ) -> None:
        """Write the fitted estimator for other places: an ONNX file, a header in C, or a page for the browser.

        Pages: docs/howto/browser.md; the others: docs/howto/export.md.

        Parameters
        ----------
        path : str or path-like
            Where to write. The ending decides: .onnx for ONNX (extra `onnx`), .h for C, .html for a page in which the
            estimator runs.
        name : str, default="esn"
            With what the names of functions in C begin; in ONNX, the name of the graph; in a page, what it calls the
            model.
        step : bool, default=False
            Whether an ONNX graph takes one frame and a state at a time, instead of whole sequences. C always does.
        numbers : {"float32", "float64", "int16", "int8"}, default=None
            In which numbers the network computes. None: those of `dtype`. int16 and int8 are for C only; a page takes
            None.
        X : array of shape (n_steps, n_features), default=None
            A sequence on which the loss by `numbers` is measured; it is written into the header. For C only.

        Raises
        ------
        ExportError
            If an option cannot be exported; the message names it.
        """
        check_is_fitted(self)
        exporting = import_module("echolearn.export")
        exporting.export_model(self, path, name=name, step=step, numbers=numbers, X=X)
