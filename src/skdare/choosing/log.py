"""What a search prints while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np

from skdare.choosing.strategies import Candidate


class SearchLog:
    """Lines on standard output, as scikit-learn's searches have them.

    Parameters
    ----------
    verbose : int
        0 is silent; 1 is a line a strategy at the end; 2 is also a line whenever one is done.
    """

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self._seconds: dict[str, float] = {}
        self._lock = Lock()

    def begin(self, folds: int, domains: int, candidates: int) -> None:
        """Say what is to be done."""
        if self.verbose:
            print(
                f"Leaving {domains} domains out in {folds} folds for each of {candidates} "
                "candidates",
                flush=True,
            )

    def done(self, candidate: Candidate, seconds: float) -> None:
        """Note the time of a candidate, together with those that differ from it in their ridge."""
        name = candidate.strategy
        with self._lock:
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds
        if self.verbose > 1:
            strength = "" if candidate.shrinkage is None else f", shrinkage={candidate.shrinkage:g}"
            print(f"[CV] END strategy={name}{strength}; {seconds:.1f}s", flush=True)

    def end(self, candidates: Sequence[Candidate], means: np.ndarray) -> None:
        """A line a strategy: its best mean score, the ridge that has it, and its seconds."""
        if not self.verbose:
            return
        for name in dict.fromkeys(candidate.strategy for candidate in candidates):
            own = [c for c, candidate in enumerate(candidates) if candidate.strategy == name]
            best = max(own, key=lambda c: means[c])
            l2 = candidates[best].formulation.l2
            seconds = self._seconds.get(name, 0.0)
            print(f"{name:<20} {means[best]:.3f} at l2={l2:g}; {seconds:.1f}s", flush=True)
