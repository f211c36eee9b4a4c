"""The theory as a table for a terminal and as one page with its figures."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from unicodedata import combining

from skdare.theory import Chapter, Claim
from skdare.theory._claims import VERDICTS

_WHERE, _VERDICT, _GAP = 17, 11, 2
_NARROW = 60


def chapter_text(chapter: Chapter, width: int = 100) -> str:
    """What the paper says beside what was measured, column by column."""
    lines = [chapter.title, ""]
    for claim in chapter.claims:
        lines += [*_claim(claim, max(width, _NARROW)), ""]
    return "\n".join(lines)


def heading(width: int = 100) -> str:
    """The names of the columns."""
    columns = _columns(max(width, _NARROW))
    names = ("where", "the paper says", "we measured", "verdict")
    cut = [name[: wide - _GAP] for name, wide in zip(names, columns, strict=True)]
    return "".join(name.ljust(wide) for name, wide in zip(cut, columns, strict=True)).rstrip()


def tally(chapters: Sequence[Chapter]) -> str:
    """How many statements hold, how many do not, and how many of those are no result."""
    claims = [claim for chapter in chapters for claim in chapter.claims]
    told = [claim.told for claim in claims]
    counts = {verdict: told.count(verdict) for verdict in dict.fromkeys((*VERDICTS, *told))}
    parts = [f"{count} {_plural(verdict, count)}" for verdict, count in counts.items() if count]
    failed = [claim.kind for claim in claims if claim.told == VERDICTS[-1]]
    minor = [
        f"{count} {name}{'s' * (count > 1)} {where}"
        for kind, name, where in (
            ("proof step", "step", "in proofs"),
            ("notation", "slip", "of notation"),
        )
        if (count := failed.count(kind))
    ]
    note = f" ({', '.join(minor)} among them)" if minor else ""
    return f"{len(told)} statement{'s' * (len(told) != 1)}: {', '.join(parts)}{note}"


def _plural(verdict: str, count: int) -> str:
    if count == 1:
        return verdict
    return verdict.replace("holds", "hold").replace("does not", "do not")


def _columns(width: int) -> tuple[int, int, int, int]:
    room = width - _WHERE - _VERDICT
    says = int(0.42 * room)
    return _WHERE, says, room - says, _VERDICT


def _claim(claim: Claim, width: int) -> list[str]:
    texts = (claim.where, claim.says, claim.measured, claim.told)
    columns = _columns(width)
    cells = [textwrap.wrap(text, wide - _GAP) for text, wide in zip(texts, columns, strict=True)]
    return [
        "".join(_padded(part or "", wide) for part, wide in zip(row, columns, strict=True)).rstrip()
        for row in zip_longest(*cells)
    ]


def _padded(text: str, wide: int) -> str:
    """To a width; a bar or hat over a letter takes no room of its own."""
    return text + " " * (wide - sum(not combining(letter) for letter in text))


def page(chapters: Sequence[Chapter]) -> str:
    """One HTML file that opens anywhere."""
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
