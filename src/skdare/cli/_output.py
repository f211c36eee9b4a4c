"""What commands print: names from data do nothing to the terminal that shows them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, TextIO

import click

from skdare._safe_text import terminal_safe

if TYPE_CHECKING:
    from skdare.bench import Record
    from skdare.report import Published

_WIDTH = 100
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
QUIET = click.option("--quiet", is_flag=True, help="No notes and no progress on stderr.")


# What stands for signs that an old terminal cannot show.
_PLAIN = str.maketrans(
    {
        "\u00a0": " ",
        "…": "...",
        "●": "#",
        "○": "o",
        "─": "-",
        "│": "|",
        "−": "-",
        "–": "-",
        "±": "~",
        "†": "+",
        "²": "2",
    }
    | dict.fromkeys("“”", '"')
)


def say(*lines: object, err: bool = False) -> None:
    """Print lines, each of them on one line whatever is in it."""
    text = "\n".join(terminal_safe(str(line)) for line in lines)
    click.echo(_shown_by(sys.stderr if err else sys.stdout, text), err=err)


def _shown_by(stream: TextIO, text: str) -> str:
    """The text, in plainer signs where the stream's encoding lacks some of it."""
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding, stream.errors or "strict")
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
    return text


def say_all(text: str, *, err: bool = False) -> None:
    """Print a text of several lines, the names in which are safe already."""
    say(*text.split("\n"), err=err)


def say_rehearsing(domain: str) -> None:
    """Print which domain a rehearsal holds out now."""
    say(f"rehearsing without {domain}", err=True)


def as_object(fields: dict[str, Any]) -> None:
    """Print one JSON object, on one line; paths, dates and NumPy's scalars are text."""
    click.echo(json.dumps(fields, ensure_ascii=False, default=str))


def show(
    records: Sequence[Record], published: Published | None = None, *, details: bool = False
) -> None:
    """Print what these records advise, beside published figures, as wide as the terminal."""
    from skdare.report import summarise, text

    width = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
    say_all(text(summarise(records, published=published), width, details=details))


def statistics(records: Sequence[Record]) -> dict[str, Any]:
    """Numbers of trials and of failures, the advice, and a row for each statistic."""
    from skdare.report import summarise, tidy
    from skdare.report._names import Naming
    from skdare.report._verdict import verdict
    from skdare.report.summary.advice import advise

    summary = summarise(records)
    advice = []
    for group in summary.groups:
        if group.main:
            advised = advise(group.main)
            heads = {"use": advised.best, "without_rows": advised.without}
            names = {name: outlook and outlook.head for name, outlook in heads.items()}
            text = " ".join(verdict(group, Naming(group.own_names)))
            advice.append({"data": group.data, "protocol": group.protocol, **names, "text": text})
    failed = sum(record.status == "failed" for record in records)
    counts = {"trials": len(records), "failed": failed}
    return {**counts, "advice": advice, "statistics": tidy(summary)}


def output() -> IO[str]:
    """Standard output for rows; on a terminal, with characters that would act on it written out."""
    stream: Any = _SafeStream(sys.stdout) if sys.stdout.isatty() else sys.stdout
    return stream


class _SafeStream:
    """A stream of text on its way to a terminal."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write("\n".join(map(terminal_safe, text.split("\n"))))
