"""What a search says while it runs, and when it is done."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Lock

import numpy as np

from skdare._logger import Progress, tell
from skdare.choosing.strategies import Candidate


class SearchLog:
    """Log records, and lines on standard output, as scikit-learn's searches have them.

    Parameters
    ----------
    verbose : int
        0 prints nothing; 1 a line now and then, and one a strategy at the end; 2 also a line
        whenever a strategy is done.
    steps : int
        How often `done` will be called.
    """

    def __init__(self, verbose: int, steps: int) -> None:
        self.verbose = verbose
        self._seconds: dict[str, float] = {}
        self._lock = Lock()
        self._progress = Progress("searching", steps, shown=verbose == 1)

    def begin(self, folds: int, domains: int, candidates: int) -> None:
        """Say what is to be done."""
        tell(
            f"Leaving {domains} domains out in {folds} folds for each of {candidates} candidates",
            shown=self.verbose > 0,
        )

    def done(self, candidate: Candidate, seconds: float) -> None:
        """Note the time of a candidate, together with those that differ from it in their ridge."""
        name = candidate.strategy
        with self._lock:
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds
        strength = "" if candidate.shrinkage is None else f", shrinkage={candidate.shrinkage:g}"
        what = f"strategy={name}{strength}"
        if self.verbose > 1:
            print(f"[CV] END {what}; {seconds:.1f}s", flush=True)
        self._progress.done(what)

    def end(self, candidates: Sequence[Candidate], means: np.ndarray) -> None:
        """A line a strategy: its best mean score, the ridge that has it, and its seconds."""
        for name in dict.fromkeys(candidate.strategy for candidate in candidates):
            own = [c for c, candidate in enumerate(candidates) if candidate.strategy == name]
            best = max(own, key=lambda c: means[c])
            l2 = candidates[best].formulation.l2
            seconds = self._seconds.get(name, 0.0)
            line = f"{name:<20} {means[best]:.3f} at l2={l2:g}; {seconds:.1f}s"
            tell(line, shown=self.verbose > 0, level=logging.DEBUG)
