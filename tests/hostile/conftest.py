"""Hostile tests: many cases, drawn from one seed, as many as a budget of minutes pays for.

    pytest tests/hostile -n 2                             # as CI runs them
    pytest tests/hostile -n 2 --seed 12 --minutes 120     # as a person does, over lunch
    pytest tests/hostile/test_x.py -k name --case 31      # one case again, alone

The same seed and minutes give the same cases on every machine: how many there are follows from
rates that tests state, never from a clock.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hunting import MINUTES, SEED, Hunt, Search

FOLDER = Path(__file__).parent


def pytest_addoption(parser):
    group = parser.getgroup("hostile tests")
    group.addoption("--seed", type=int, default=SEED, help=f"of every case [default: {SEED}]")
    group.addoption(
        "--minutes",
        type=float,
        default=MINUTES,
        help=f"what all hostile tests may take on two cores, about [default: {MINUTES:g}]",
    )
    group.addoption("--case", type=int, help="run this case alone, by its number")


def asked(config, name, default=None):
    """An option; where only a folder above is given, pytest does not know ours."""
    return config.getoption(name, default)


def pytest_report_header(config):
    seed, minutes = asked(config, "seed", SEED), asked(config, "minutes", MINUTES)
    return f"hostile tests: --seed {seed} --minutes {minutes:g}"


def pytest_collection_modifyitems(items):
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.hostile)
            # What is warned of is fine: the law is about what is raised and what comes back.
            item.add_marker(pytest.mark.filterwarnings("ignore"), append=False)


@pytest.fixture
def hunt(request, tmp_path) -> Hunt:
    """The cases of a test: ``for case in hunt(rate=100): with case: ...``."""
    return _hunt(request, tmp_path)


@pytest.fixture
def search(request, tmp_path) -> Search:
    """A law that hypothesis tries to break: ``@search(rate=10, x=strategy) def law(x): ...``."""
    return Search(_hunt(request, tmp_path))


def _hunt(request, tmp_path) -> Hunt:
    config = request.config
    return Hunt(
        test=f"{request.node.path.name}::{request.node.name}",
        folder=tmp_path,
        seed=asked(config, "seed", SEED),
        minutes=asked(config, "minutes", MINUTES),
        only=asked(config, "case"),
    )
