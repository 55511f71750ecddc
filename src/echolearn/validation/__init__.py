"""Checks of single values, parameter rules, and the place that a warning points at."""
