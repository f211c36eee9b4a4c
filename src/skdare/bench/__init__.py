"""Hold each domain out in turn, and score heads on it."""

from skdare.bench.record import Record, RecordFile
from skdare.bench.run import run_bench
from skdare.bench.settings import Settings

__all__ = ["Record", "RecordFile", "Settings", "run_bench"]
