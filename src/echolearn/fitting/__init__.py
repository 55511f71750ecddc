"""A fit: from checked data and settings to a fitted model."""
