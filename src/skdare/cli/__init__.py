"""The command line: data on stdout, progress on stderr, exit code 2 for a user's mistake."""

from __future__ import annotations

import click

import skdare
from skdare.cli._bench import ablate, bench
from skdare.cli._demo import demo
from skdare.cli._diagnose import diagnose
from skdare.cli._features import features
from skdare.cli._figure1 import figure1
from skdare.cli._learn import extract, train
from skdare.cli._report import report
from skdare.cli._reproduce import reproduce
from skdare.cli._theory import theory


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(skdare.__version__, prog_name="skdare")
def main() -> None:
    """Linear predictors on frozen features that hold up on domains nobody has seen."""


COMMANDS = (
    *(bench, ablate, report, figure1, diagnose, theory),
    *(train, extract, reproduce, features, demo),
)
for command in COMMANDS:
    main.add_command(command)
