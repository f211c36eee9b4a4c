"""Engines: passes over rows run in this process, or with the workers of a Dask cluster."""

from skdare.engines._engine import DaskEngine
from skdare.engines._engine import check_engine as check_engine
from skdare.engines._placement import Placement as Placement
from skdare.engines._placement import as_rows as as_rows

__all__ = ["DaskEngine"]
