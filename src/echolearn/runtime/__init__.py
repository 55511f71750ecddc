"""Saved models without weight: their plans, with NumPy alone."""

from echolearn.runtime.plan import ExportError, Plan
from echolearn.runtime.planning import plan_from_contents

__all__ = ["ExportError", "Plan", "plan_from_contents"]
