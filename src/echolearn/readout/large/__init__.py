"""Readouts of some thousand hidden units and more, by conjugate gradients instead of a Gram matrix."""
