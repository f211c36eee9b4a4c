"""What commands print: answers on stdout; notes, progress and mistakes on stderr."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shlex
import shutil
import signal
import sys
import textwrap
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, TextIO

from skdare.cli.answer import Answer
from skdare.cli.bars import shown
from skdare.errors import InputError, printable

MISTAKE = 2
FAILURE = 1
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
UNREAD = 128 + 13  # SIGPIPE, which Windows has not
# Failures of the machine, for which other arguments are no remedy.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_WIDEST = 100
# An argument as Python writes it, not in quotes.
_ASSIGNED = re.compile(
    r"(?<!['\"\w.])(?<!--set )([a-z][a-z0-9_]*)=(\([^()]*\)|'[^']*'|[\w.*]+(?:\(\))?|)"
)


def write(text: str, stream: TextIO | None = None) -> None:
    print(printable(text), file=stream or sys.stdout, flush=True)


def tell(text: str) -> None:
    """A line on stderr; wrapped on a terminal, whole in a file, where it may be searched for."""
    if sys.stderr.isatty():
        width = min(shutil.get_terminal_size().columns, _WIDEST)
        indent = " " * (text.find(": ") + 2) if text.find(": ") in range(9) else ""
        text = textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False)
    write(text, sys.stderr)


def show(answer: Answer, *, as_json: bool) -> None:
    """An answer on stdout."""
    if as_json:
        text = json.dumps(_for_json({**answer.fields, "next": answer.next}), ensure_ascii=False)
        print(_escaped(text))
        return
    commands = "\n      ".join(answer.next)
    parts = [answer.text, f"next: {commands}" if commands else ""]
    write("\n\n".join(part for part in parts if part))


def _escaped(text: str) -> str:
    """JSON without characters that a terminal acts on; JSON itself escapes few of them."""
    if text.isprintable():
        return text

    def escaped(c: str) -> str:
        units = c.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))

    return "".join(c if c == printable(c) else escaped(c) for c in text)


def in_options(text: str, options: Collection[str]) -> str:
    """A message of the library, with Python's arguments as options of a command.

    A name that is no option of the command is a parameter of a head, for ``fit --set``.
    """

    def option(match: re.Match[str]) -> str:
        name, value = match[1].replace("_", "-"), match[2]
        name = {"scoring": "metric"}.get(name, name)
        if name == "preparation":
            value = "auto" if value == "'auto'" else "standardize"
        if value.startswith("'"):
            name_given = value[1:-1]
            value = shlex.quote(f'"{name_given}"' if "," in name_given else name_given)
        else:
            value = ",".join(re.findall(r"[^\s'\",()]+", value))
        if name not in options:
            of_fit = name in ("preparation", "drop", "keep", "missing")
            spelt = f"--{name} {value}" if of_fit else f"--set {match[1]}={value}"
            fits = "set" in options or text[: match.start()].endswith("fit with ")
            return spelt if fits else f"skdare fit {spelt}"
        if value in ("True", "False"):
            return f"--{'' if value == 'True' else 'no-'}{name}"
        return f"--{name} {value}".rstrip()

    if not options:
        return text
    found = re.sub(r"\banother out\b", "another --out", _ASSIGNED.sub(option, text))
    return found if found == text else re.sub(r"(?<!-)\b(pass|set) --", "give --", found)


def _for_json(value: Any) -> Any:
    """Plain values: NaN becomes null, and objects such as paths become text."""
    if isinstance(value, Mapping):
        return {str(name): _for_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(each) for each in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return _for_json(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


@contextmanager
def notes(options: Collection[str], *, quiet: bool) -> Iterator[None]:
    """Warnings as notes, each once, and progress; none of it if quiet.

    Notes and mistakes name what to give by these options.
    """
    said: set[str] = set()

    def note(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = in_options(str(message), options)
        if text not in said and not quiet:
            tell(f"note: {text}")
        said.add(text)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Others are about code, or about numbers that the library deals with.
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.showwarning = note
        with nullcontext() if quiet else shown(lambda text: tell(f"note: {text}")):
            try:
                yield
            except InputError as error:
                words = in_options(error.what, options), in_options(error.hint, options)
                raise InputError(*words) from error
        if said and not quiet and sys.stderr.isatty():
            write("", sys.stderr)


@contextmanager
def endings() -> Iterator[None]:
    """How all commands end: a mistake with exit code 2, a signal with that of a shell.

    On the way out of every block half-written files are removed, so SIGTERM is an exception.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
        sys.stdout.flush()  # here, where a closed pipe can still be told from a failure
    except InputError as error:
        _end(MISTAKE, error.what, error.hint)
    except BrokenPipeError:
        # What is still buffered would be written, and complained of, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(UNREAD)
    except FileNotFoundError as error:
        what = f"there is no file '{error.filename}'" if error.filename else str(error)
        _end(MISTAKE, what, "check the path")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        what = f"'{error.filename}': {reason}" if error.filename else reason
        if error.errno in _NO_ROOM:
            _end(FAILURE, what, "make room on the disk, and run the same command again")
        _end(MISTAKE, what)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package == "skdare":
            raise
        _end(MISTAKE, f"this needs {package}, which is not installed", f"pip install {package}")
    except MemoryError:
        _end(FAILURE, "there is too little memory", "give fewer rows or features")
    except KeyboardInterrupt as stop:
        tell("; ".join(["stopped", *getattr(stop, "__notes__", ())]))
        sys.exit(INTERRUPTED)


def _end(code: int, what: str, hint: str = "") -> None:
    tell("error: " + " ".join(what.split()))
    if hint:
        write("", sys.stderr)
        tell("hint: " + " ".join(hint.split()))
    sys.exit(code)
