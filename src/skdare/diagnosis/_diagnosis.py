"""The report on a new domain: findings and a recommendation, as text, HTML or JSON."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skdare._safe_text import terminal_safe
from skdare.diagnosis._finding import Finding
from skdare.diagnosis._recommendation import Recommendation

_MARKS = {"fine": "·", "look": "!", "alarm": "!!", "unknown": "?"}
_LEGEND = "·  as expected   !  look   !!  alarm   ?  cannot say"
_COLOURS = {"fine": "#2a7", "look": "#b80", "alarm": "#c33", "unknown": "#888"}
_CELL = "padding:.4em .8em .4em 0;vertical-align:top;text-align:left"


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Whether a head can be trusted on a new domain.

    Parameters
    ----------
    rows : int
        Unlabelled rows that were looked at.
    findings : sequence of Finding
    recommendation : Recommendation
    """

    rows: int
    findings: Sequence[Finding]
    recommendation: Recommendation

    def __getitem__(self, name: str) -> Finding:
        """The finding of this name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        names = ", ".join(f"`{finding.name}`" for finding in self.findings)
        raise KeyError(f"there is no finding `{name}`; there are {names}")

    def text(self, width: int = 88) -> str:
        """Text for a terminal."""
        lines = [f"a new domain, {_rows(self.rows)}", "", f"recommended: {self._action()}"]
        lines += [*textwrap.wrap(terminal_safe(self.recommendation.reason), width), ""]
        for finding in self.findings:
            lines.append(f"{_MARKS[finding.level]:<3}{finding.question}")
            lines += [
                f"   {line}" for line in textwrap.wrap(terminal_safe(finding.answer), width - 3)
            ]
            lines.append("")
        return "\n".join([*lines, _LEGEND])

    def _action(self) -> str:
        chosen = self.recommendation
        if chosen.action == "collect labels":
            return f"collect {chosen.labelled_rows:,} labelled rows and retrain the last layer"
        return chosen.action

    def __str__(self) -> str:
        return self.text()

    def html(self) -> str:
        """A piece of HTML that stands by itself."""
        rows = "".join(
            f'<tr><td style="{_CELL};color:{_COLOURS[f.level]}"><b>{f.level}</b></td>'
            f'<td style="{_CELL}"><b>{html.escape(f.question)}</b><br>{html.escape(f.answer)}</td>'
            "</tr>"
            for f in self.findings
        )
        return (
            '<div style="max-width:46em;font-family:sans-serif;line-height:1.4">'
            f"<p>A new domain, {_rows(self.rows)}.</p>"
            f"<p><b>Recommended: {html.escape(self._action())}.</b> "
            f"{html.escape(self.recommendation.reason)}</p>"
            f'<table style="border-collapse:collapse">{rows}</table></div>'
        )

    def _repr_html_(self) -> str:
        return self.html()

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "rows": self.rows,
            "findings": {finding.name: asdict(finding) for finding in self.findings},
            "recommendation": asdict(self.recommendation),
        }


def _rows(count: int) -> str:
    return "1 unlabelled row" if count == 1 else f"{count:,} unlabelled rows"
