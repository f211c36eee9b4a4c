"""What is odd about a table, before a fit."""

from skdare.checking.check import Check, check
from skdare.checking.oddities import Finding

__all__ = ["Check", "Finding", "check"]
