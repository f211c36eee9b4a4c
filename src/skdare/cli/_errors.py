"""A user's mistake ends with exit code 2, what to do in a hint apart; a failure with code 1."""

from __future__ import annotations

import errno
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click

from skdare._input_error import InputError
from skdare._logger import PROGRESS
from skdare.cli._output import say

# Failures of the machine, which other arguments would not mend.
_FAILURES = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
# Arguments of the library whose option has another name than they have.
_PARAMETERS = {
    "features": "feature_key",
    "folder": "out",
    "id": "id_key",
    "networks": "network",
    "scoring": "metrics",
    **{role: f"{role}_column" for role in ("image", "text", "label", "domain")},
}
# Arguments of heads that hints name; they go through --set of a fit.
_OF_HEADS = (
    *("adaptation", "adjust", "centered", "fit_intercept", "mean_penalty"),
    *("shrinkage", "shrinkage_target", "strategies"),
)
# What an option does under another name in Python: the option, its words, and what to say where a
# command does not have it.
_IN_PYTHON = {
    "with missing='drop'": ("drop_missing", "with --drop-missing", "of the file"),
    "with preparation=SimpleImputer()": ("impute", "with --impute median", "before"),
    "with SimpleImputer() in a Pipeline": ("impute", "with --impute median", "before"),
    "with skdare.compare": (None, "with `skdare bench`", ""),
    "call rehearse on it": (None, "fit it with `skdare fit --rehearse`", ""),
    "call rehearse with the training rows again": (None, "fit it with `skdare fit --rehearse`", ""),
    "call rehearse with the training rows, and adapt after that": (
        *(None, "fit it with `skdare fit --rehearse`, and adapt after that", ""),
    ),
    "pass rows and labels": (None, "give ROWS and --labels", ""),
    "see score_interval, by labels of other rows": (
        *(None, "give labels of other rows with --labels", ""),
    ),
    "give labels of other rows to predict_set": (None, "use head.predict_set(X, y) in Python", ""),
}
_QUOTE = "'"
# What Python writes around and between texts, and the command line does not.
_PUNCTUATION = r"['() ]|,(?=\))"


def check_writable(path: str) -> None:
    """Refuse a file that cannot be written, before the work that would go into it."""
    file = Path(path).resolve()
    if file.is_dir() or not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        raise InputError(f"{path} cannot be written", "name a file in a folder that exists")


@contextmanager
def mistakes() -> Iterator[None]:
    """Show a ValueError, or a missing file or package, as a user's mistake."""
    try:
        yield
    except BrokenPipeError:  # nobody reads on
        raise
    except MemoryError as error:
        _show(f"there is too little memory ({error})" if str(error) else "memory is full", "")
        sys.exit(1)
    except InputError as error:
        _show(*in_options(error.what, error.remedy, error.argument))
        sys.exit(2)
    except (ValueError, OSError, ImportError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.strerror and error.filename:
            text = f"{error.filename}: {error.strerror.lower()}; name another path"
        what, _, remedy = text.partition("; ")
        _show(*in_options(what, remedy))
        failed = isinstance(error, OSError) and error.errno in _FAILURES
        sys.exit(1 if failed else 2)


def _show(what: str, remedy: str) -> None:
    say(f"error: {what}", err=True)
    if remedy:
        say("", f"hint: {remedy}", err=True)


def in_options(
    what: str, remedy: str, argument: str | None = None, *, command: click.Command | None = None
) -> tuple[str, str]:
    """A message in the words of the command line: options in the place of arguments.

    The argument that the message is about is replaced at the beginning of ``what`` and in the
    remedy; other arguments only in the remedy, where they are written as in Python, ``name=value``.
    Options are those of a command, by default the one that runs; without any, nothing is changed.
    """
    context = click.get_current_context(silent=True)
    command = command or (None if context is None else context.command)
    if command is None:
        return what, remedy
    options = _options(command)
    for phrase, (name, words, otherwise) in _IN_PYTHON.items():
        remedy = remedy.replace(phrase, words if name is None or name in options else otherwise)
    if argument is not None and argument in options:
        option = options[argument].opts[0]
        what = re.sub(rf"^{argument}\b", option, what).replace(f"{option}=", f"{option} ")
        remedy = re.sub(rf"\b{argument}\b(?!=)", option, remedy)

    def as_option(match: re.Match[str]) -> str:
        prefix, name, value = match.groups()
        if name in options:
            text = options[name].opts[0]
            if value and not options[name].is_flag:
                text += f" {value.strip(_QUOTE) or value}"
        elif name in _OF_HEADS:
            # A bench asks whose option it is.
            owner = "HEAD." if "set" in options else ""
            text = f"--set {owner}{name}={re.sub(_PUNCTUATION, '', value)}"
        else:
            return match[0]
        return f"give {text}" if prefix else text

    return what, re.sub(r"(\bset )?\b(\w+)=('[^']*'|\([^)]*\)|[\w.+-]*)", as_option, remedy)


def _options(command: click.Command) -> dict[str, click.Option]:
    """Options of a command, by the arguments that they stand for."""
    options = {str(p.name): p for p in command.params if isinstance(p, click.Option)}
    renamed = {a: options[name] for a, name in _PARAMETERS.items() if name in options}
    return {**options, **renamed}


@contextmanager
def _progress_shown() -> Iterator[None]:
    """Lines of the library on how far work has come, as notes on stderr."""
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: say(record.getMessage(), err=True)  # type: ignore[method-assign]
    level = PROGRESS.level
    PROGRESS.addHandler(handler)
    PROGRESS.setLevel(logging.INFO)
    try:
        yield
    finally:
        PROGRESS.removeHandler(handler)
        PROGRESS.setLevel(level)


@contextmanager
def notes() -> Iterator[None]:
    """Warnings of the library as notes on stderr, each once; none where --quiet is given."""
    context = click.get_current_context(silent=True)
    quiet = context is not None and context.params.get("quiet", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Commands pass arrays whose columns they have put in the order of the names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        shown = nullcontext() if quiet else _progress_shown()
        try:
            with shown:
                yield
        finally:
            if not quiet:
                for message in dict.fromkeys(str(warning.message) for warning in caught):
                    what, semicolon, remedy = message.partition("; ")
                    say(f"note: {what}{semicolon}{in_options(what, remedy)[1]}", err=True)
