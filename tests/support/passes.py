"""Passes over small data in many groups, as if the data were large."""

from echolearn.gradients import loss
from echolearn.readout import conjugate_gradients, network, observation, sketch
from echolearn.training.objectives import ridge, stacked

MODULES = (observation, network, conjugate_gradients, sketch, loss, ridge, stacked)  # that group sequences by FRAMES


def work_on_frames(monkeypatch, frames):
    """Let every pass work on at most so many frames at once."""
    for module in MODULES:
        monkeypatch.setattr(module, "FRAMES", frames)
