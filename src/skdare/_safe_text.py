"""Text from data where it could do something: on a terminal, in a spreadsheet, or to a file."""

from __future__ import annotations

import csv
import unicodedata
from dataclasses import dataclass
from typing import IO, Any

# Controls, marks that turn or hide text, halves of characters, and ends of lines.
_ACTING = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
# Words of some languages, and joined emoji, are written with these.
_JOINERS = "\u200c\u200d"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def terminal_safe(text: str) -> str:
    r"""A line of text in which characters that a terminal acts on are written out.

    Examples
    --------
    >>> from skdare._safe_text import terminal_safe
    >>> print(terminal_safe("red: \x1b[31m, two\nlines, turned: \u202e"))
    red: \x1b[31m, two\nlines, turned: \u202e
    """
    if text.isprintable():
        return text
    return "".join(_written_out(c) if _acts(c) else c for c in text)


def _acts(character: str) -> bool:
    return unicodedata.category(character) in _ACTING and character not in _JOINERS


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode()


def csv_writer(file: IO[str]) -> Any:
    r"""A CSV writer whose rows end in a line feed.

    Python 3.11's own, told to end rows so, leaves a carriage return within a field unquoted, and
    whoever reads the file takes it for the end of the row.

    Examples
    --------
    >>> import io
    >>> from skdare._safe_text import csv_writer
    >>> file = io.StringIO()
    >>> _ = csv_writer(file).writerow(["a\rb", 1])
    >>> file.getvalue()
    '"a\rb",1\n'
    """
    return csv.writer(_Lines(file))


@dataclass(frozen=True)
class _Lines:
    """What a CSV writer writes to: one whole row at a time, ended in the way of CSV."""

    file: IO[str]

    def write(self, row: str) -> int:
        return self.file.write(row.removesuffix("\r\n") + "\n")


def spreadsheet_safe(value: Any) -> Any:
    """A value of a table that no spreadsheet takes for a formula; numbers stay as they are.

    Examples
    --------
    >>> from skdare._safe_text import spreadsheet_safe
    >>> [spreadsheet_safe(value) for value in ("=1+1", "-site", -1.5, "site")]
    ["'=1+1", "'-site", -1.5, 'site']
    """
    acts = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if acts else value
