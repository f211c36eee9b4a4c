"""Text as it is shown: harmless on a terminal and in a spreadsheet, with true minus signs."""

from __future__ import annotations

import csv
import unicodedata
from dataclasses import dataclass
from typing import IO, Any

# Unicode categories: controls, marks that turn or hide text, halves of characters, line ends.
_ACTIVE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
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
    return "".join(c.encode("unicode_escape").decode() if _is_active(c) else c for c in text)


def _is_active(character: str) -> bool:
    return unicodedata.category(character) in _ACTIVE and character not in _JOINERS


def csv_writer(file: IO[str]) -> Any:
    r"""A CSV writer whose rows end in a line feed.

    Python 3.11's own writer, set to end rows this way, does not quote a carriage return within a
    field, and a reader takes it for the end of the row.

    Examples
    --------
    >>> import io
    >>> from skdare._safe_text import csv_writer
    >>> file = io.StringIO()
    >>> _ = csv_writer(file).writerow(["a\rb", 1])
    >>> file.getvalue()
    '"a\rb",1\n'
    """
    return csv.writer(_LineFeeds(file))


@dataclass(frozen=True)
class _LineFeeds:
    """A file whose rows end in a line feed, whatever the writer ends them in."""

    file: IO[str]

    def write(self, row: str) -> int:
        return self.file.write(row.removesuffix("\r\n") + "\n")


def spreadsheet_safe(value: Any) -> Any:
    """A value that no spreadsheet takes for a formula; only text is changed.

    Examples
    --------
    >>> from skdare._safe_text import spreadsheet_safe
    >>> [spreadsheet_safe(value) for value in ("=1+1", "-site", -1.5, "site")]
    ["'=1+1", "'-site", -1.5, 'site']
    """
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula else value


def typographic(text: str) -> str:
    """Text with minus signs in place of hyphens."""
    return text.replace("-", "−")


def counted(n: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> from skdare._safe_text import counted
    >>> counted(1, "row"), counted(1200, "row"), counted(0, "class")
    ('1 row', '1,200 rows', '0 classes')
    """
    plural = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{n:,} {noun}{'' if n == 1 else plural}"
