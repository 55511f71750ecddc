"""The search for settings."""

from echolearn.tuning.search import tune as tune
