"""Accuracy by the number of features that networks end in: the paper's figure on dimension.

    skdare reproduce digits --bottleneck 8 --out digits-8.run          # and other numbers
    python benchmarks/bottleneck.py digits-*.run [--protocol paper] [--out digits.bottleneck]

Runs are folders that `skdare reproduce` wrote for the same study, each with a bottleneck of its
own; one without a bottleneck counts with all its features. The table has means over held-out
domains and trials, on the rows of the held-out domain that were set aside. With ``--out`` the
records become one sweep, of which ``skdare report digits.bottleneck`` draws the figure.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from skdare.bench import Log, Record
from skdare.bench._record import ABLATION, NETWORK
from skdare.datasets import store_info
from skdare.report import summarise
from skdare.report._names import label
from skdare.report.summary.grid import Sweep
from skdare.reproduce import BENCH, PRETRAINED

STUDY = "bottleneck"
# What a run has of networks, heads and ceilings; the rest says nothing of accuracy.
COMPARED = ("main", "ceiling", NETWORK)


def by_size(runs: Sequence[Path]) -> dict[int, Path]:
    """Runs by the number of their features."""
    sizes = {store_info(run / PRETRAINED).features: run for run in runs}
    if len(sizes) < len(runs):
        raise SystemExit("two runs have the same number of features; give one of them")
    return dict(sorted(sizes.items()))


def of_sweep(run: Path, size: int, protocol: str) -> Iterator[Record]:
    """Records of a run, as those of a sweep over the number of features."""
    for record in Log(run / BENCH).read():
        if record.study in COMPARED and record.protocol == protocol:
            key = f"{record.key}-{size}"
            yield replace(record, key=key, study=ABLATION + STUDY, x=float(size))


def swept(records: Sequence[Record]) -> Sweep:
    """The one sweep of records that are of the same data."""
    groups = summarise(records).groups
    if len(groups) != 1:
        names = ", ".join(group.data for group in groups) or "none"
        raise SystemExit(f"runs of one study are needed, with this protocol; these are of {names}")
    sweep = groups[0].ablations[STUDY]
    assert isinstance(sweep, Sweep)
    return sweep


def table(sweep: Sweep) -> str:
    """Percent by number of features, with half of the 90 % interval over trials."""
    lines = [f"| features | {' | '.join(map(label, sweep.lines))} |"]
    lines.append("| ---: |" + " ---: |" * len(sweep.lines))
    averages = [sweep.averages(line) for line in sweep.lines]
    for x, *estimates in zip(sweep.x, *averages, strict=True):
        cells = [f"{100 * e.mean:.1f} ± {100 * e.t.half_width:.1f}" for e in estimates]
        lines.append(f"| {x:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Gather the runs, print the table, and write the sweep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--protocol", default="paper")
    parser.add_argument("--out")
    args = parser.parse_args()
    runs = by_size(args.runs)
    records = [r for size, run in runs.items() for r in of_sweep(run, size, args.protocol)]
    print(table(swept(records)))
    if args.out is not None:
        log = Log(args.out)
        done = log.done()
        with log.open() as writer:
            for record in records:
                if record.key not in done:
                    writer.append(record)


if __name__ == "__main__":
    main()
