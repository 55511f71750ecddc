from smallmodels import file, model

__all__ = ["file", "model"]
