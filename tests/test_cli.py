"""The command line: data on stdout, mistakes exit with 2, help with an example."""

from __future__ import annotations

import re

import numpy as np
import pytest
from click.testing import CliRunner

import skdare
from skdare import demo
from skdare.cli import main


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


def test_version_is_the_packages():
    assert run("--version").output.strip() == f"skdare, version {skdare.__version__}"


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_has_help_with_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"skdare {command}" in result.output


def test_demo_prints_every_head_and_a_worst_row():
    result = run("demo", "--trials", "1")
    assert result.exit_code == 0
    for name in (*demo.COLUMNS, "mean", "worst", "tilted"):
        assert re.search(rf"\b{name}\b", result.stdout), name


def test_a_mistake_exits_with_two():
    result = run("demo", "--trials", "0")
    assert result.exit_code == 2
    assert "trials" in result.stderr


def test_the_worst_row_is_the_mean_of_each_trials_worst_domain():
    accuracy = np.zeros((2, 2, len(demo.COLUMNS)))
    accuracy[0, 0], accuracy[1, 1] = 10.0, 30.0
    text = demo.table(demo.Result(demo.STUDIES[0], ["a", "b"], accuracy))
    assert re.search(r"^worst +0\.0 ± 0\.0", text, re.MULTILINE)
    assert re.search(r"^mean +10\.0 ± ", text, re.MULTILINE)
