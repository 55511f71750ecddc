"""Fitted models as files, and back."""
