"""Fitted models for other places: ONNX and C. What every export is written from is a `Plan`."""
