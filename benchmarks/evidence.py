"""Evidence for the defaults of the DARE heads: leave-one-domain-out on real data, as tables.

    python benchmarks/evidence.py --data DIR > tables.md
    python benchmarks/evidence.py --data DIR --quick --parts defaults adapt
    python benchmarks/evidence.py --data fetch --parts defaults     # from the publishers' files

Progress goes to stderr. Thread counts come from the environment (OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import evidence_adapt
import evidence_choice
import evidence_criteria
import evidence_defaults
import evidence_mixture
import evidence_pool
import evidence_regression
import evidence_rungs
import evidence_whitening
from real_data import LOADERS, Root, available, data_root, folds, standardized_folds

PARTS = {
    "defaults": evidence_defaults,
    "adapt": evidence_adapt,
    "choice": evidence_choice,
    "rungs": evidence_rungs,
    "mixture": evidence_mixture,
    "criteria": evidence_criteria,
    "pool": evidence_pool,
    "regression": evidence_regression,
    "whitening": evidence_whitening,
}
# The others have a ridge that is fixed.
SEARCHING = ("choice", "rungs")
QUICK = ("office", "heart", "gas-log-ppm", "prsa")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the chosen parts on the chosen sets and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of the sets (default: $SKDARE_DATA), or `fetch`")
    parser.add_argument("--sets", nargs="+", choices=LOADERS, help="default: all there are")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--records", type=Path, help="also append every score to this JSONL file")
    parser.add_argument("--render", type=Path, help="measure nothing: tables of such a file")
    options = parser.parse_args(argv)
    if options.render:
        records = [json.loads(line) for line in options.render.read_text().splitlines()]
    else:
        root = data_root(options.data)
        names = QUICK if options.quick else options.sets or available(root)
        records = measure(names, options.parts, root, options.records)
    for part in options.parts:
        chosen = [record for record in records if record["part"] == part]
        if chosen:
            print(PARTS[part].report(chosen))


def measure(names: Sequence[str], parts: Sequence[str], root: Root, log: Path | None) -> list[dict]:
    """Every record of the parts on the named sets, logged as they come."""
    warnings.simplefilter("ignore")  # label shift is counted by its part; the rest is in the scores
    records: list[dict] = []
    for name in names:
        for part in parts:
            start = time.perf_counter()
            load = folds if part in SEARCHING else standardized_folds
            measured = PARTS[part].measure(load(name, root))
            records += measured
            print(f"{name} {part}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
            if log:
                with log.open("a") as file:
                    file.writelines(json.dumps(record) + "\n" for record in measured)
    return records


if __name__ == "__main__":
    main()
