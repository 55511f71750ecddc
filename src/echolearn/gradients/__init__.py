"""Derivatives of the error by the input and recurrent weights."""

from echolearn.gradients.exact import loss_and_gradients as loss_and_gradients
