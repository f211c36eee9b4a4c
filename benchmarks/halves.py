"""A benchmark over held-out domains of the real sets, as a table for each half of them."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from diagnose import folds
from evidence_choice import DECIDED_ON
from real_data import LOADERS, Fold, data_root


def run(
    description: str,
    measure: Callable[[Fold], dict],
    table: Callable[[Sequence[dict], str], None],
    sets: Sequence[str],
    *,
    chosen: str,
    domains: int,
) -> None:
    """Measure every held-out domain, and print a table of the sets that rules were chosen on first.

    Parameters
    ----------
    description : str
        Of the script.
    measure : callable
        From a fold to its record.
    table : callable
        Prints records under a title.
    sets : sequence of str
        By default.
    chosen : str
        What was chosen on the first half.
    domains : int
        How many of a set are held out by default.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data")
    parser.add_argument("--sets", default=",".join(sets))
    parser.add_argument("--domains", type=int, default=domains)
    args = parser.parse_args()
    names = args.sets.split(",")
    unknown = set(names) - set(LOADERS)
    if unknown:
        parser.error(f"no set is called {min(unknown)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for title, decided in ((f"{chosen} chosen on", True), ("not chosen on", False)):
            half = [name for name in names if (name in DECIDED_ON) == decided]
            if half:
                table(list(_measured(half, data_root(args.data), args.domains, measure)), title)


def _measured(
    names: Sequence[str], root: Path, most: int, measure: Callable[[Fold], dict]
) -> Iterator[dict]:
    """One record for each held-out domain."""
    for name in names:
        for fold in folds(name, root, most):
            yield measure(fold)
            print(f"{name} {fold.held_out}", file=sys.stderr, flush=True)
