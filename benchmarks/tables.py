"""Seconds to read, check and write tables, compared with pandas.

    python benchmarks/tables.py [--cases wide middle long] [--beside OTHER/src]

pandas looks for no labels, ids or damage. Of another source tree only reading is compared. Seconds
of CPU, one BLAS thread; above one: skdare, or this tree, is quicker.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from houses import arguments, best, measured, ratio, table

# rows, features
CASES = {"tiny": (200, 4), "wide": (500, 10_000), "middle": (10_000, 512), "long": (200_000, 8)}
FORMATS = ("csv", "parquet", "npz")


def write_case(folder: Path, n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"f{j}" for j in range(d)])
    labels = pd.DataFrame({"y": rng.integers(3, size=n), "site": np.arange(n) % 4})
    frame = pd.concat([labels, X], axis=1)
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_parquet(folder / "table.parquet", index=False)
    np.savez(folder / "table.npz", X=X, y=labels["y"], site=labels["site"])


def with_pandas(path: Path) -> object:
    """The features and the labels, as arrays."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            return [file[name] for name in file.files]
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    return frame.drop(columns=["y", "site"]).to_numpy(), frame["y"].to_numpy()


def child(folder: Path, runs: int) -> dict[str, float]:
    warnings.simplefilter("ignore")
    try:
        from skdare.data import read
    except ImportError:
        from skdare.datasets import read
    paths = {kind: folder / f"table.{kind}" for kind in FORMATS}
    seconds = {f"read {kind}": best(partial(read, path), runs)[0] for kind, path in paths.items()}
    for kind, path in paths.items():
        seconds[f"pandas read {kind}"] = best(partial(with_pandas, path), runs)[0]
    try:
        from skdare.checking import check
        from skdare.data import write
    except ImportError:
        return seconds
    data, frame = read(paths["npz"]), pd.read_parquet(paths["parquet"])
    out = {kind: folder / f"out.{kind}" for kind in ("csv", "parquet")}
    seconds["check"] = best(lambda: check(data), runs)[0]
    seconds["pandas check"] = best(frame.describe, runs)[0]
    for kind, path in out.items():
        seconds[f"write {kind}"] = best(partial(write, data, path), runs)[0]
    seconds["pandas write csv"] = best(partial(frame.to_csv, out["csv"], index=False), runs)[0]
    plain = partial(frame.to_parquet, out["parquet"], index=False)
    seconds["pandas write parquet"] = best(plain, runs)[0]
    return seconds


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cases", nargs="*", default=["wide", "middle", "long"], choices=CASES)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(Path(options.child), options.runs)))
        return
    lines = []
    for name in options.cases:
        n, d = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            write_case(Path(folder), n, d)
            ours, *others = measured(__file__, folder, options)
        for what in (what for what in ours if not what.startswith("pandas ")):
            line = [f"{n:,} × {d:,}, {what}", f"{ours[what]:.3f}"]
            line.append(ratio(ours[f"pandas {what}"], ours[what]))
            line += [ratio(other.get(what), ours[what]) for other in others]
            lines.append(line)
    header = [
        "table",
        "seconds",
        "than pandas",
        *(["than the other tree"] if options.beside else []),
    ]
    print(table(header, lines))


if __name__ == "__main__":
    main()
