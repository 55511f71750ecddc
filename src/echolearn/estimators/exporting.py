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
        """Write the fitted estimator as an ONNX file, a header in C, or a page for the browser.

        ONNX and C: docs/howto/export.md. Pages for the browser: docs/howto/browser.md.

        Parameters
        ----------
        path : str or path-like
            The file to write. Its ending is the format: .onnx for ONNX (extra `onnx`), .h for C, .html for a page in
            which the estimator runs.
        name : str, default="esn"
            The prefix of the functions in C, the name of the graph in ONNX, or the name of the model on a page.
        step : bool, default=False
            Whether an ONNX graph takes one frame and a state at a time, instead of whole sequences. Code in C
            always takes one frame at a time.
        numbers : {"float32", "float64", "int16", "int8"}, default=None
            The type of number in which the exported network computes. None: the `dtype` of the estimator. "int16" and
            "int8" are for C on small processors only. A page for the browser requires None.
        X : array of shape (n_steps, n_features), default=None
            A sequence on which the loss of accuracy by `numbers` is measured. The result is written into the header.
            For C only.

        Raises
        ------
        ExportError
            If an option cannot be exported; the message names it.
        """
        check_is_fitted(self)
        exporting = import_module("echolearn.export")
        exporting.export_model(self, path, name=name, step=step, numbers=numbers, X=X)
