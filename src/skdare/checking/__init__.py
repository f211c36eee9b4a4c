"""Checks of a table before anything is fitted to it: what is found, where, and what to do."""

from __future__ import annotations

from skdare.checking._check import DataCheck, check_data
from skdare.checking._finding import DataFinding

__all__ = ["DataCheck", "DataFinding", "check_data"]
