"""A fitted head in other formats."""

from skdare.export.linear_map import LinearMap

__all__ = ["LinearMap"]
