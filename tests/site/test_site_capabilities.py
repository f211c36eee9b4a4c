"""Every line of the table of capabilities runs."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pytest

import skdare
from pages import ROOT, run_command
from skdare import data, displays, export

PAGE = (ROOT / "docs" / "capabilities.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\| (.+?) \| `(.+)` \|$", PAGE, re.M)
SLOW = re.compile(r"skdare (demo|bench|report|theory|reproduce)")
NEEDS = {"to_onnx": "onnx", "torch": "torch", "dask": "dask", "train": "torch", "extract": "torch"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with files, and the names that the lines of the page use."""
    folder = tmp_path_factory.mktemp("capabilities")
    made = data.make_latent_domains(random_state=0)
    new = made.domains == 3
    data.write(made.rows(~new), folder / "table.csv")
    data.write(made.rows(new), folder / "new.csv")
    X, y, domains = made.X[~new], made.y[~new], made.domains[~new]
    table = data.read(folder / "table.csv")
    head = skdare.DAREClassifierCV().fit(X, y, domains, rehearse=True)
    saved = skdare.DAREClassifierCV().fit(table.X, table.y, table.domains, rehearse=True)
    saved.save(folder / "head.safetensors")
    from scipy.sparse import csr_array
    from sklearn.preprocessing import StandardScaler

    names = {name: getattr(skdare, name) for name in skdare.__all__}
    for module in (data, displays, export):
        names |= {name: getattr(module, name) for name in module.__all__}
    names |= {"csr_array": csr_array, "StandardScaler": StandardScaler}
    names |= {"X": X, "y": y, "domains": domains, "head": head}
    return folder, {**names, "X_new": made.X[new], "y_new": made.y[new]}


@pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=what, marks=[pytest.mark.slow] if SLOW.match(line) else [])
        for what, line in LINES
    ],
)
def test_a_line_of_the_table_of_capabilities_runs(line, place, monkeypatch):
    folder, names = place
    monkeypatch.chdir(folder)
    for word, package in NEEDS.items():
        if word in line and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    if line.startswith("skdare "):
        if "report" in line:
            run_command("bench", "table.csv", "--heads", "erm")
        assert run_command(*line.split()[1:])
        return
    names = dict(names)
    for package in ("torch", "dask.array"):
        if package in line:
            names[package.partition(".")[0]] = __import__(package)
    *statements, last = line.split("; ")
    for statement in statements:
        exec(statement, names)
    result = eval(last, names)
    assert not isinstance(result, np.ndarray) or np.isfinite(result).all()


def test_every_head_and_command_has_a_line():
    shown = "\n".join(line for _, line in LINES)
    from skdare.cli import NAMES

    public = [name for name in skdare.__all__ if name[0].isupper()]
    assert [name for name in public if name not in shown] == []
    assert [name for name in NAMES if f"skdare {name}" not in shown.replace("--json ", "")] == []
