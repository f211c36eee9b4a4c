"""Where passes over rows run: in this process, or with the workers of a Dask cluster."""

from skdare.engines._engine import DaskEngine, check_engine
from skdare.engines._placing import Placing, as_rows

__all__ = ["DaskEngine", "Placing", "as_rows", "check_engine"]
