"""Networks that run on streams: anomalies of single frames, lasting changes, and learning that can be withdrawn."""

from echolearn.monitoring.drift import PageHinkley
from echolearn.monitoring.guard import GuardedStream
from echolearn.monitoring.monitor import Monitor

__all__ = ["GuardedStream", "Monitor", "PageHinkley"]
