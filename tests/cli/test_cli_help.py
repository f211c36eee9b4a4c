"""Every command and option is explained, and help comes at once."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from importlib import import_module
from typing import get_args

import pytest

from commands import run
from skdare import DAREClassifier, __version__
from skdare.bench import Settings
from skdare.bench.heads import DEFAULT_HEADS, HEADS
from skdare.cli import COMMANDS, NAMES, app, options_of

SHARED = {"json", "quiet", "config"}


def arguments(name):
    return [
        argument
        for argument in app[name].assemble_argument_collection(parse_docstring=True)
        if argument.names and argument.show
    ]


def signature(name):
    module = next(modules[name] for modules in COMMANDS.values() if name in modules)
    function = getattr(import_module(f"skdare.cli.{module}"), name)
    return inspect.signature(function).parameters


def test_all_commands_have_120_options_together_at_most():
    options = {name: options_of(name) for name in NAMES}
    assert sum(map(len, options.values())) + len(SHARED) <= 120
    assert len(options["bench"] | SHARED) <= 16


def test_an_option_means_the_same_in_every_command():
    meanings = {}
    for name in NAMES:
        for argument in arguments(name):
            kinds = {str(part) for part in get_args(argument.hint) or (argument.hint,)}
            for option in argument.names:
                meanings.setdefault(option, set()).add(frozenset(kinds - {str(type(None))}))
    assert {option: kinds for option, kinds in meanings.items() if len(kinds) > 1} == {}


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_explained(name):
    assert app[name].help
    for argument in arguments(name):
        assert argument.parameter.help, argument.names


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_is_plain_text_of_80_columns(name, tmp_path):
    done = run(*filter(None, [name]), "--help", folder=tmp_path)
    assert done.code == 0
    assert done.err == ""
    assert "\x1b" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_list_names_each_command_once_with_a_line(tmp_path):
    lines = run("--help", folder=tmp_path).out.splitlines()
    for name in NAMES:
        assert sum(line.split()[:1] == [name] and len(line.split()) > 2 for line in lines) == 1


def test_help_of_a_command_parts_its_options_from_those_of_all(tmp_path):
    page = run("bench", "--help", folder=tmp_path).out
    own, everywhere = page.split("\nOptions:\n")[1].split("\nOptions of every command:\n")
    assert "--held-out" in own
    assert "--json" in everywhere
    assert "--held-out" not in everywhere


def test_help_imports_nothing_that_is_slow_and_fits_a_narrow_terminal():
    """What makes it quick; seconds are measured in benchmarks."""
    script = (
        "import sys\nfrom skdare.cli import NAMES, main\n"
        "for name in ['', *NAMES]:\n"
        "    sys.argv = ['skdare', *filter(None, [name]), '--help']\n"
        "    try:\n        main()\n    except SystemExit:\n        pass\n"
        "slow = {'numpy', 'scipy', 'pandas', 'sklearn', 'torch', 'matplotlib', 'jinja2'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"COLUMNS": "50"},
        capture_output=True,
        text=True,
    )
    *page, slow = done.stdout.splitlines()
    assert slow == "[]", done.stderr
    wide = [line for line in page if len(line) > 50]
    assert all(line.startswith("  skdare ") for line in wide)  # a command stays in one piece


def test_the_version_is_that_of_the_package(tmp_path):
    assert run("--version", folder=tmp_path).out.strip() == f"skdare {__version__}"


def test_a_shell_completes_commands_and_options():
    script = app.generate_completion(shell="bash")
    assert all(name in script for name in NAMES)
    assert "--held-out" in script


# Defaults


@pytest.mark.parametrize("option", ["prior_rows", "force"])
def test_defaults_of_adapt_are_those_of_the_adapter(option):
    ours = signature("adapt")[option].default
    assert ours == inspect.signature(DAREClassifier.adapt).parameters[option].default


def test_defaults_of_bench_are_those_of_its_settings():
    ours = signature("bench")
    default = Settings()
    for name in ("heads", "held_out", "repeats"):
        assert ours[name].default == getattr(default, name)


def test_help_names_the_heads_of_the_bench_and_the_default_ones(tmp_path):
    page = " ".join(run("bench", "--help", folder=tmp_path).out.split())
    assert "of " + ", ".join(HEADS) in page
    assert (*tuple(HEADS)[:4], "dare-adapted") == DEFAULT_HEADS
    assert "the first four and dare-adapted" in page


def test_fit_offers_every_head_of_the_table():
    from skdare.heads.table import HEADS as table

    hint = inspect.get_annotations(import_module("skdare.cli.fit").fit, eval_str=True)["head"]
    assert set(get_args(hint)) == set(table)
