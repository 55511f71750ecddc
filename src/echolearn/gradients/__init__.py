"""Exact derivatives of the training error with respect to the input and recurrent weights."""

from echolearn.gradients.loss import LossAndGradients as LossAndGradients
from echolearn.gradients.loss import loss_and_gradients as loss_and_gradients
