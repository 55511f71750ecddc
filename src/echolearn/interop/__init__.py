"""Exchange with other libraries: our estimators in their terms, and their matrices in ours (docs/howto/interop.md).

`sktime` and `aeon` hold estimators of these libraries and need them installed; `reservoirpy` exchanges weights with
reservoirpy's nodes.
"""
