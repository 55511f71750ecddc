"""Exact derivatives of the training error with respect to the input and recurrent weights."""

from echolearn.gradients.loss import LossAndGradients, loss_and_gradients

__all__ = ["LossAndGradients", "loss_and_gradients"]
