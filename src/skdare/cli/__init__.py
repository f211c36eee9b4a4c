"""The command line: data on stdout, progress on stderr, exit code 2 for a user's mistake."""

from __future__ import annotations

import click

import skdare
from skdare.cli._commands import Commands, Late

GROUPS = {
    "Use a head": {
        "check": "List what is odd about a table, before a fit.",
        "fit": "Fit a head to a table of features, and save it.",
        "predict": "Predict the rows of a file of any size.",
        "adapt": "Adapt a saved head to rows of a new domain, with or without labels.",
        "suggest": "Say which rows of a new domain to label.",
        "measure": "Say how accurate a classifier is in a new domain.",
        "calibrate": "Calibrate probabilities for a new domain.",
        "diagnose": "Say whether to trust a head on a new domain.",
        "export": "Write a saved head as ONNX, for torch, or as a table.",
        "inspect": "Say what a saved head or stream is.",
    },
    "Compare heads": {
        "bench": "Hold out each domain in turn, and compare heads.",
        "ablate": "Leave one thing out of DARE, or sweep one number.",
        "report": "Write the report of a run: HTML, Markdown, LaTeX, CSV.",
        "figure1": "Draw the paper's first figure from a run.",
        "demo": "Show everything on embedded data.",
    },
    "From images or text to features": {
        "train": "Fine-tune a network for each held-out domain.",
        "extract": "Write features of every row to a store.",
        "features": "Look at tables of features, convert and check them.",
        "reproduce": "Train, extract, bench and report, in one go.",
    },
    "More": {
        "theory": "Measure what the paper proves.",
        "completion": "Print a script that completes commands and options.",
    },
}
"""Commands with what they do, by purpose."""
# Each command is in a module of its own name, except these.
MODULES = {"ablate": "_bench", "train": "_learn", "extract": "_learn"}


@click.group(
    cls=Commands,
    groups=GROUPS,
    commands=Late({n: MODULES.get(n, f"_{n}") for group in GROUPS.values() for n in group}),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(skdare.__version__, prog_name="skdare")
def main() -> None:
    """Linear predictors on frozen features that hold up on domains nobody has seen.

    Results go to stdout, progress and notes to stderr. The exit code is 0 if all went well, 2 for
    a mistake in the arguments or files, 1 if something failed, 130 after Ctrl-C, and 143 after
    SIGTERM.

    \b
    Example:
      skdare fit features.npz --out head.safetensors
      skdare predict head.safetensors new.csv --out predictions.csv
    """
