"""How far a newcomer has to walk: ceilings on the modules and functions that a call crosses."""

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
# Modules and functions of ours; those of the design in benchmarks/house.py, or what is reached.
CEILINGS = {
    "fit": (20, 140),
    "predict": (5, 35),
    "adapt": (16, 110),
    "search": (30, 240),
    "bench of a CSV file": (56, 420),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.startswith(("search", "bench")) else ())
        for name in CEILINGS
    ],
)
def test_no_walk_grows_longer(monkeypatch, name):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import house

    walk = house.walks((name,))[name]
    modules, functions = CEILINGS[name]
    assert walk.modules <= modules, sorted(walk.functions)
    assert walk.count <= functions, walk.functions
