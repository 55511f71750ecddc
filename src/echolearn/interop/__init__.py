"""Neighbours: echolearn's estimators in other libraries' terms, and their matrices in ours. See docs/howto/interop.md.

`sktime` and `aeon` hold estimators of these libraries and need them installed; `reservoirpy` exchanges weights with
reservoirpy's nodes.
"""
