"""Errors of the library on the command line: options in the place of arguments."""

from __future__ import annotations

import pickle

import click
import pytest

from skdare._validation import InputError, check_number
from skdare.cli import main
from skdare.cli._errors import in_options, mistakes


def shown(command: str, error: Exception, capsys) -> str:
    """Stderr of a command that ends with this error."""
    with (
        click.Context(main.commands[command]),
        pytest.raises(SystemExit, match="2"),
        mistakes(),
    ):
        raise error
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "error", "expected"),
    [
        (
            "bench",
            InputError("l2_grid is empty", "pass at least one number", argument="l2_grid"),
            "error: --l2-grid is empty\n\nhint: pass at least one number\n",
        ),
        (
            "bench",
            InputError("no features in a.npz", "name one with features=", argument="features"),
            "error: no features in a.npz\n\nhint: name one with --feature-key\n",
        ),
        (
            "bench",
            InputError("clip is 3", "set standardize=True too", argument="clip"),
            "error: --clip is 3\n\nhint: give --standardize too\n",
        ),
        (
            "train",
            InputError("the loss is not a number", "lower lr", argument="lr"),
            "error: the loss is not a number\n\nhint: lower --lr\n",
        ),
        (
            "predict",
            InputError("no 'p' for id", "name one with id=", argument="id"),
            "error: no 'p' for id\n\nhint: name one with --id\n",
        ),
        (
            "fit",
            ValueError("a has 1 row; merge it, or set shrinkage=1.0 or centered=False"),
            "error: a has 1 row\n\n"
            "hint: merge it, or give --set shrinkage=1.0 or --set centered=False\n",
        ),
        ("inspect", InputError("l2 is -1", argument="l2"), "error: l2 is -1\n"),
        (
            "adapt",
            InputError("nothing learnt", "fit with strategies=('erm', 'raw'), or adjust=True"),
            "error: nothing learnt\n\n"
            "hint: fit with --set strategies=erm,raw, or --set adjust=True\n",
        ),
        (
            "bench",
            ValueError("a has 1 row; set shrinkage=1.0"),
            "error: a has 1 row\n\nhint: give --set HEAD.shrinkage=1.0\n",
        ),
        (
            "fit",
            ValueError("X has NaN; fill them with SimpleImputer() in a Pipeline, or drop them"),
            "error: X has NaN\n\nhint: fill them with --impute median, or drop them\n",
        ),
        (
            "fit",
            InputError("scoring='roc_auc' fails", "choose another", argument="scoring"),
            "error: --metric 'roc_auc' fails\n\nhint: choose another\n",
        ),
        (
            "extract",
            ValueError("no label in 3 rows; leave those rows out with missing='drop'"),
            "error: no label in 3 rows\n\nhint: leave those rows out of the file\n",
        ),
        (
            "bench",
            ValueError("domains=a.npz is not there; it has split=''"),
            "error: domains=a.npz is not there\n\nhint: it has --split ''\n",
        ),
    ],
)
def test_an_error_about_an_argument_names_its_option(command, error, expected, capsys):
    assert shown(command, error, capsys) == expected


def test_outside_a_command_arguments_keep_their_names():
    assert in_options("l2 is -1", "set l2=1", "l2") == ("l2 is -1", "set l2=1")


def test_an_input_error_is_a_value_error_and_survives_pickling():
    with pytest.raises(ValueError, match=r"^l2 is -1; it must be a finite number") as caught:
        check_number("l2", -1)
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, InputError)
    assert (error.what, error.argument) == ("l2 is -1", "l2")
    assert str(error) == f"{error.what}; {error.remedy}"
