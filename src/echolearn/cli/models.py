"""Model files as commands open them: a network, that of a recogniser, or a recogniser."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from sklearn.pipeline import Pipeline

from echolearn.estimators import ESNClassifier
from echolearn.estimators._functions import SingleEstimator, StackEstimator
from echolearn.modelfile.layout import RECOGNIZER
from echolearn.modelfile.reader import file_kind
from echolearn.speech.recognition import Recognizer, load_recognizer
from echolearn.speech.recognition._recognizer import load_any

Network: TypeAlias = SingleEstimator | StackEstimator | Pipeline


def open_network(path: Path) -> Network:
    """Load an estimator or a pipeline, or the network of a recogniser."""
    model = load_any(path)
    return model.model if isinstance(model, Recognizer) else model


def open_state_network(path: Path) -> ESNClassifier:
    """Load a network for phone states, or that of a recogniser; ValueError for a network of another kind."""
    model = open_network(path)
    if not isinstance(model, ESNClassifier) or not model.per_step_ or model.classes_.dtype.kind != "U":
        raise ValueError(
            f"{path} ({type(model).__name__}) is not a network for phone states; make one with: echolearn train. To "
            "predict the rows of a table with it: echolearn predict MODEL FILE.csv"
        )
    return model


def open_recognizer(path: Path) -> Recognizer:
    """Load a recogniser; ValueError for a plain network, with what to do."""
    if path.is_file() and file_kind(path) not in (RECOGNIZER, None):
        raise ValueError(
            f"{path} is a network without a decoder; make a recogniser with: echolearn train NEW.safetensors "
            "--for recognition"
        )
    return load_recognizer(path)
