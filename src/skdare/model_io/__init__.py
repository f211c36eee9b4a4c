"""Heads and pipelines as files without code, and back."""

from skdare.model_io.inspection import inspect_file
from skdare.model_io.saving import load, save

__all__ = ["inspect_file", "load", "save"]
