"""One kind of table, for the terminal and for the page; and the screen of a bench."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from skdare.errors import counted, filled, printable
from skdare.report.advice import advise
from skdare.report.summary import Summary

WIDTH = 80
# More held-out domains than this, and a screen shows the worst and the best.
MANY = 12
SHOWN = 5


@dataclass(frozen=True)
class Table:
    """Cells that are text already.

    Parameters
    ----------
    title : str
    corner : str
        The heading of the first column.
    columns : list of str
        Headings, of one line or of two.
    rows : list of (label, cells)
        A label without cells is a remark between rows.
    totals : list of (label, cells)
        Rows below a line.
    """

    title: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[str]]]
    totals: list[tuple[str, list[str]]] = field(default_factory=list)

    def text(self, width: int = WIDTH) -> str:
        """The table in characters; columns that do not fit go below, with the first repeated."""
        lines = [*self.rows, *self.totals]
        labels = [self.corner, *(label for label, cells in lines if cells)]
        first = min(max(map(len, labels)), width // 2)
        headings = [heading.split("\n") for heading in self.columns]
        height = max(map(len, headings))
        widths = [
            2 + max(*map(len, heading), *(len(cells[j]) for _, cells in lines if cells))
            for j, heading in enumerate(headings)
        ]

        def line(label: str, cells: list[str]) -> str:
            if len(label) > first and cells:
                label = label[: first - 1] + "…"
            shown = zip(cells[start:stop], widths[start:stop], strict=False)
            return (label.ljust(first) + "".join(cell.rjust(w) for cell, w in shown)).rstrip()

        parts, start = [], 0
        while start < len(widths):
            stop = start + 1
            while stop < len(widths) and first + sum(widths[start : stop + 1]) <= width:
                stop += 1
            above = [
                line(self.corner if level == 0 else "", [[*h, ""][level] for h in headings])
                for level in range(height)
            ]
            body = [line(label, cells) for label, cells in self.rows]
            below = [line(label, cells) for label, cells in self.totals]
            rule = ["─" * (first + sum(widths[start:stop]))] if below else []
            parts.append("\n".join([*above, *body, *rule, *below]))
            start = stop
        return f"{self.title}\n\n" + "\n\n".join(parts)

    def html(self) -> str:
        """The table as HTML, every cell escaped."""
        headings = [escape(each).replace("\n", "<br>") for each in [self.corner, *self.columns]]
        head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
        parts = [f"<thead><tr>{head}</tr></thead>"]
        for part, lines in (("tbody", self.rows), ("tfoot", self.totals)):
            body = ""
            for label, cells in lines:
                span = "" if cells else f' colspan="{len(headings)}"'
                body += f'<tr><th scope="row" title="{escape(label)}"{span}>{escape(label)}</th>'
                body += "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>\n"
            if body:
                parts.append(f"<{part}>\n{body}</{part}>")
        return "<table>\n" + "\n".join(parts) + "\n</table>"


def score_table(summary: Summary, *, brief: bool = False) -> Table:
    """Scores of every head on every held-out domain; brief shows the worst and best of many."""
    scores, scale = summary.scores, summary.scale
    ordered = scores.loc[scores.mean(axis=1).sort_values(kind="stable").index]
    rows = [(str(d), [scale.value(v) for v in ordered.loc[d]]) for d in ordered.index]
    if brief and len(rows) > MANY:
        between = len(rows) - 2 * SHOWN
        remark = f"… {counted(between, 'domain')} between these, in the report"
        rows = [*rows[:SHOWN], (remark, []), *rows[-SHOWN:]]
    totals = [("average", [scale.value(mean) for mean in scores.mean(skipna=False)])]
    base = summary.lines[summary.baseline].label
    for word, sign in (("above", 1), ("below", -1)):
        counts = [
            "" if head == summary.baseline
            else str(sum(scale.matters(sign * d) for d in summary.gain(head).differences))
            for head in summary.lines
        ]  # fmt: skip
        totals.append((f"domains over {scale.step_words} {word} {base}", counts))
    columns = [line.label + ("\nadapted" if line.adapts else "") for line in summary.lines.values()]
    order = ", the hardest first" if len(rows) > 1 else ""
    title = f"{scale.title} on each held-out domain{order}"
    return Table(title, "held out", columns, rows, totals)


def gain_table(summary: Summary) -> Table:
    """Gain of each head over the baseline, with interval and p-value."""
    scale = summary.scale
    rows = []
    for head, p in summary.p_values.items():
        gain = summary.gain(head)
        low, high = gain.interval
        cells = [
            scale.signed(gain.mean),
            f"{scale.signed(low)} to {scale.signed(high)}" if len(gain) > 1 else "",
            f"{gain.better} of {len(gain)}",
            f"{p:.3f}" if p >= 0.001 else "< 0.001",
        ]
        line = summary.lines[head]
        rows.append((line.label + (", adapted" if line.adapts else ""), cells))
    base = summary.lines[summary.baseline].label
    unit = " in points" if scale.unit else ""
    columns = ["mean", "90 % interval", "better on", "p"]
    return Table(f"Difference from {base}{unit}", "head", columns, rows)


def meanings(summary: Summary) -> list[tuple[str, str]]:
    """The meaning of each label of a column, once."""
    said = {line.label: line.means for line in summary.lines.values() if line.means}
    return list(said.items())


def chosen(summary: Summary) -> list[str]:
    """Choices of the choosing heads, a sentence each; the same choices are named once."""
    sentences: dict[str, str] = {}
    for head, line in summary.lines.items():
        counts = summary.choices(head)
        total = sum(counts.values())
        declined = counts.pop("", 0)
        parts = [f"{words} on {n}" for words, n in counts.items()]
        if parts:
            parts[0] = f"took {parts[0]} of {total} held-out domains"
        if declined and not parts:
            parts.append(f"was left unadapted on {declined} of {total} held-out domains")
        elif declined:
            parts.append(f"left unadapted on {declined}")
        if parts:
            when = ", adapted," if line.adapts else ""
            sentences.setdefault(f"{line.label}{when} {', '.join(parts)}.", head)
    return list(sentences)


def remarks(summary: Summary) -> list[str]:
    """Notes below the scores."""
    least = summary.scale.value(summary.scale.floor) if summary.is_cut else ""
    return [f"An R² below {least} counts as {least}, here, in means and in tests."] if least else []


def screen(summary: Summary) -> str:
    """The text that a terminal shows at the end of a bench."""
    parts = [
        summary.title,
        filled(str(advise(summary))),
        score_table(summary, brief=True).text(),
        *map(filled, remarks(summary)),
        "\n".join(filled(f"{label}: {means}", indent="  ") for label, means in meanings(summary)),
        *map(filled, chosen(summary)),
    ]
    if len(summary.failures):
        first = summary.failures.iloc[0]
        text = (
            f"{counted(len(summary.failures), 'fit')} failed, the first of "
            f"{summary.lines[str(first['head'])].name} on '{first['held_out']}': {first['reason']}"
        )
        parts.append(filled(text))
    return printable("\n\n".join(part for part in parts if part))
