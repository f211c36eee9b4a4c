"""The answer on a new domain: what to do, why, and what was looked at, as text, HTML or JSON."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from skdare._safe_text import counted, terminal_safe
from skdare.diagnosis._bound import Bound
from skdare.diagnosis._finding import Finding
from skdare.diagnosis._forecast import Forecast
from skdare.diagnosis._recommendation import Recommendation
from skdare.diagnosis._rehearsal import Rehearsal, Rehearsed

_MARKS = {"fine": "·", "look": "!", "alarm": "!!", "unknown": "?"}
_LEGEND = "·  as expected   !  look   !!  alarm   ?  cannot say"


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Whether a head can be trusted on a new domain, and what to do.

    Parameters
    ----------
    rows : int
        Unlabelled rows that were looked at.
    recommendation : Recommendation
    remarks : sequence of str
        What it rests on, and what to be wary of, a sentence each.
    forecasts : mapping from "use", "adapt" and "label" to a Forecast
        Of those that can be had.
    findings : sequence of Finding
        The rest of what was looked at: distances, class shares, the paper's assumptions.
    rehearsal : Rehearsal, optional
        What the forecasts rest on.
    bounds : mapping from "use" and "adapt" to a Bound
        The least accuracy to count on; of a classifier.
    """

    rows: int
    recommendation: Recommendation
    remarks: Sequence[str] = ()
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    rehearsal: Rehearsal | None = None
    bounds: Mapping[str, Bound] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Finding:
        """The finding of this name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        names = ", ".join(f"`{finding.name}`" for finding in self.findings)
        raise KeyError(f"there is no finding `{name}`; there are {names}")

    def text(self, width: int = 88, *, details: bool = False) -> str:
        """Text for a terminal; with details, every finding below it."""
        lines = [f"a new domain: {counted(self.rows, 'row')}, no labels"]
        for sentence in (self.recommendation.reason, *self.remarks):
            lines += textwrap.wrap(terminal_safe(sentence), width, subsequent_indent="  ")
        if details and self.findings:
            for finding in self.findings:
                lines += ["", f"{_MARKS[finding.level]:<3}{finding.question}"]
                lines += [
                    f"   {line}" for line in textwrap.wrap(terminal_safe(finding.answer), width - 3)
                ]
            lines += ["", _LEGEND]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def html(self) -> str:
        """A piece of HTML that stands by itself, with every finding folded below the advice."""
        remarks = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.remarks)
        findings = "".join(
            f"<dt><b>{html.escape(f.question)}</b></dt><dd>{html.escape(f.answer)}</dd>"
            for f in self.findings
        )
        folded = ""
        if findings:
            folded = (
                f"<details><summary>What else was looked at</summary><dl>{findings}</dl></details>"
            )
        return (
            '<div style="max-width:46em;font-family:sans-serif;line-height:1.4">'
            f"<p>A new domain: {counted(self.rows, 'row')}, no labels.</p>"
            f"<p><b>{html.escape(self.recommendation.reason)}</b></p>"
            f"<ul>{remarks}</ul>{folded}</div>"
        )

    def _repr_html_(self) -> str:
        return self.html()

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        rehearsed = () if self.rehearsal is None else self.rehearsal.domains
        return {
            "rows": self.rows,
            "recommendation": asdict(self.recommendation),
            "remarks": list(self.remarks),
            "forecasts": {name: asdict(one) for name, one in self.forecasts.items()},
            "bounds": {name: one.to_dict() for name, one in self.bounds.items()},
            "rehearsed": {one.domain: _scores(one) for one in rehearsed},
            "findings": {finding.name: asdict(finding) for finding in self.findings},
        }


def _scores(one: Rehearsed) -> dict[str, float | None]:
    return {"use": one.as_is, "adapt": one.adapted_by_all}
