"""Passes over small data in many groups, as if the data were large."""

from echolearn.gradients import loss
from echolearn.readout import network, softmax
from echolearn.readout import view as views
from echolearn.readout.large import conjugate_gradients, sketch
from echolearn.training.objectives import ridge

MODULES = (views, network, softmax, conjugate_gradients, sketch, loss, ridge)  # that group sequences so


def work_on_frames(monkeypatch, frames):
    """Let every pass work on at most so many frames at once."""
    for module in MODULES:
        monkeypatch.setattr(module, "MAX_FRAMES_PER_PASS", frames)
