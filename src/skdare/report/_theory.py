"""The theory as a table for a terminal, and as one page with its figures."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from unicodedata import combining

from skdare._safe_text import counted
from skdare.theory import Chapter, Claim
from skdare.theory._claims import NOT_CONFIRMED, VERDICTS

# Widths in letters: of the first column and the last, between columns, and of the whole at least.
_WHERE = 17
_VERDICT = 11
_GAP = 2
_NARROW = 60


def chapter_text(chapter: Chapter, width: int = 100) -> str:
    """Statements of the paper beside what was measured, column by column."""
    lines = [chapter.title, ""]
    for claim in chapter.claims:
        lines += [*_claim(claim, max(width, _NARROW)), ""]
    return "\n".join(lines)


def heading(width: int = 100) -> str:
    """Names of the columns."""
    names = ("where", "the paper says", "we measured", "verdict")
    widths = _widths(max(width, _NARROW))
    return _row([name[: w - _GAP] for name, w in zip(names, widths, strict=True)], widths)


def tally(chapters: Sequence[Chapter]) -> str:
    """Number of statements that hold and do not hold, and how many of the latter are minor."""
    claims = [claim for chapter in chapters for claim in chapter.claims]
    verdicts = [claim.told for claim in claims]
    counts = {verdict: verdicts.count(verdict) for verdict in (*VERDICTS, NOT_CONFIRMED)}
    parts = [f"{count} {_plural(verdict, count)}" for verdict, count in counts.items() if count]
    failed = [claim.kind for claim in claims if claim.told == VERDICTS[-1]]
    minor = [
        f"{counted(count, name)} {where}"
        for kind, name, where in (
            ("proof step", "step", "in proofs"),
            ("notation", "slip", "of notation"),
        )
        if (count := failed.count(kind))
    ]
    note = f" ({', '.join(minor)} among them)" if minor else ""
    return f"{counted(len(claims), 'statement')}: {', '.join(parts)}{note}"


def _plural(verdict: str, count: int) -> str:
    if count == 1:
        return verdict
    return verdict.replace("holds", "hold").replace("does not", "do not")


def _widths(width: int) -> tuple[int, int, int, int]:
    room = width - _WHERE - _VERDICT
    says = int(0.42 * room)
    return _WHERE, says, room - says, _VERDICT


def _claim(claim: Claim, width: int) -> list[str]:
    texts = (claim.where, claim.says, claim.measured, claim.told)
    widths = _widths(width)
    cells = [textwrap.wrap(text, w - _GAP) for text, w in zip(texts, widths, strict=True)]
    return [_row(parts, widths) for parts in zip_longest(*cells, fillvalue="")]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells side by side; a bar or hat over a letter takes no room of its own."""
    row = ""
    for text, width in zip(cells, widths, strict=True):
        row += text + " " * (width - sum(not combining(letter) for letter in text))
    return row.rstrip()


def theory_page(chapters: Sequence[Chapter]) -> str:
    """The theory as one HTML file that opens anywhere."""
    try:
        from markupsafe import Markup

        from skdare.report._html import environment
        from skdare.report._theory_figures import draw
    except ImportError as error:
        raise ValueError(f"a page needs {error.name}; pip install 'skdare[report]'") from error
    template = environment().get_template("theory.html")
    # Our own SVG, its words escaped.
    return template.render(
        chapters=chapters, tally=tally(chapters), figure=lambda picture: Markup(draw(picture))
    )
