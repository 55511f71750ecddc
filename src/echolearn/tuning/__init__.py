"""The search for settings with Optuna."""

from echolearn.tuning.results import Trial as Trial
from echolearn.tuning.results import Tuning as Tuning
from echolearn.tuning.search import tune as tune
