"""Advice to the user: warnings about the data before a fit, about its result, and about scores."""
