"""Forecasts of real series: smoothing of level, trend and season; a network that corrects them; errors of the past."""
