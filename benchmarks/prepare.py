"""Write the real data sets as files that `skdare bench` reads.

    python benchmarks/prepare.py OUT [--data DIR] [--only pacs,gas]

Each set becomes OUT/NAME.npz with X, y, domains and, where rows are reserved, split; PACS, whose
features were fine-tuned once for each held-out domain, becomes OUT/pacs/DOMAIN.npz. Missing values
and units are left as they are, for the bench to fill and standardise by training domains only.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from real_data import LOADERS, Dataset, data_root


def save(path: Path, dataset: Dataset) -> None:
    """One table, uncompressed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"X": dataset.X.astype(np.float32), "y": dataset.y, "domains": dataset.domains}
    if dataset.reserved is not None:
        arrays["split"] = dataset.reserved
    np.savez(path, **arrays)
    print(f"{path}: {arrays['X'].shape[0]} rows, {arrays['X'].shape[1]} features")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument("--only", default=",".join(LOADERS), help="names, separated by commas")
    given = parser.parse_args()
    for name in given.only.split(","):
        sets = LOADERS[name](data_root(given.data))
        for dataset in sets:
            alone = len(sets) == 1
            path = given.out / (f"{name}.npz" if alone else f"{name}/{dataset.held_out[0]}.npz")
            save(path, dataset)


if __name__ == "__main__":
    main()
