"""From records to what people read: one frame, one kind of table, text and a page."""

from skdare.report.compare import compare
from skdare.report.summary import Summary

__all__ = ["Summary", "compare"]
