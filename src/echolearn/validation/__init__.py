"""Checks of single values, parameter rules, and the wording of errors."""
