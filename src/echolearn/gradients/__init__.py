"""Derivatives of the error by the input and recurrent weights, through the closed-form readout."""

from echolearn.gradients.loss import LossAndGradients as LossAndGradients
from echolearn.gradients.loss import loss_and_gradients as loss_and_gradients
