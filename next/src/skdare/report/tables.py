"""One kind of table, for the terminal and for the page; and the screen of a bench."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from itertools import groupby

from skdare.errors import counted, filled, printable
from skdare.report.advice import advise
from skdare.report.summary import Summary

WIDTH = 80
# More held-out domains than this, and a screen shows the worst and the best.
MANY = 12
SHOWN = 5
_WITHOUT = "unadapted"
_WITH = "adapted to its rows"


@dataclass(frozen=True)
class Table:
    """Cells that are text already, with a heading for each column and for groups of columns.

    Parameters
    ----------
    title : str
    corner : str
        The heading of the first column.
    columns : list of (group, label)
    rows : list of (label, cells)
        A label without cells is a remark between rows.
    totals : list of (label, cells)
        Rows below a line.
    """

    title: str
    corner: str
    columns: list[tuple[str, str]]
    rows: list[tuple[str, list[str]]]
    totals: list[tuple[str, list[str]]] = field(default_factory=list)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Each heading of several columns, and how many it spans."""
        return [(name, len(list(g))) for name, g in groupby(group for group, _ in self.columns)]

    def text(self, width: int = WIDTH) -> str:
        """The table in characters; columns that do not fit go below, with the first repeated."""
        lines = [*self.rows, *self.totals]
        labels = [self.corner, *(label for label, cells in lines if cells)]
        first = min(max(map(len, labels)), width // 2)
        widths = [
            2 + max(len(label), *(len(cells[j]) for _, cells in lines if cells))
            for j, (_, label) in enumerate(self.columns)
        ]
        parts, start = [], 0
        while start < len(widths):
            stop = start + 1
            while stop < len(widths) and first + sum(widths[start : stop + 1]) <= width:
                stop += 1
            parts.append(self._part(start, stop, first, widths))
            start = stop
        return f"{self.title}\n\n" + "\n\n".join(parts)

    def _part(self, start: int, stop: int, first: int, widths: list[int]) -> str:
        widths = widths[start:stop]
        spans = [
            (name, len(list(g)))
            for name, g in groupby(name for name, _ in self.columns[start:stop])
        ]
        lines: list[str] = []
        if any(name for name, _ in spans):
            # A heading must not be wider than its columns; the last of them grows for a long word.
            place, ends = 0, []
            for name, n in spans:
                room = sum(widths[place : place + n]) - 2
                longest = max(map(len, name.split()), default=0)
                widths[place + n - 1] += max(0, longest - room)
                place += n
                ends.append(sum(widths[:place]))
            starts = [0, *ends[:-1]]
            wrapped = [
                textwrap.wrap(name, end - begin - 2)
                for (name, _), begin, end in zip(spans, starts, ends, strict=True)
            ]
            height = max(map(len, wrapped))
            for level in range(height):
                heading = " " * first
                for words, begin, end in zip(wrapped, starts, ends, strict=True):
                    padded = [""] * (height - len(words)) + words
                    heading += "  " + padded[level].center(end - begin - 2)
                lines.append(heading.rstrip())
            rules = (
                "  " + "─" * (end - begin - 2) for begin, end in zip(starts, ends, strict=True)
            )
            lines.append(" " * first + "".join(rules))

        def line(label: str, cells: list[str]) -> str:
            if len(label) > first and cells:
                label = label[: first - 1] + "…"
            shown = zip(cells[start:stop], widths, strict=False)
            return (label.ljust(first) + "".join(cell.rjust(w) for cell, w in shown)).rstrip()

        lines.append(line(self.corner, [label for _, label in self.columns]))
        lines += [line(label, cells) for label, cells in self.rows]
        if self.totals:
            lines.append("─" * (first + sum(widths)))
            lines += [line(label, cells) for label, cells in self.totals]
        return "\n".join(lines)


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
            for head in scores
        ]  # fmt: skip
        totals.append((f"domains over {scale.step_words} {word} {base}", counts))
    columns = [(_WITH if line.adapts else _WITHOUT, line.label) for line in summary.lines.values()]
    order = "the hardest first" if len(rows) > 1 else ""
    title = f"{scale.title} on each held-out domain{f', {order}' if order else ''}"
    return Table(title, "held out", columns, rows, totals)


def gain_table(summary: Summary) -> Table:
    """How far each head is above the baseline, and how sure that is."""
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
    columns = [("", "mean"), ("", "90 % interval"), ("", "better on"), ("", "p")]
    base = summary.lines[summary.baseline].label
    unit = " in points" if scale.unit else ""
    return Table(f"Difference from {base}{unit}", "head", columns, rows)


def meanings(summary: Summary) -> list[tuple[str, str]]:
    """What the labels of the columns mean, each once."""
    said = {line.label: line.means for line in summary.lines.values() if line.means}
    return list(said.items())


def chosen(summary: Summary) -> list[str]:
    """What heads that choose chose, a sentence each; the same choices are said once."""
    sentences: dict[str, str] = {}
    for head, line in summary.lines.items():
        counts = summary.choices(head)
        if not counts:
            continue
        (first, n), *rest = counts.items()
        text = f"took {first} on {n} of {sum(counts.values())} held-out domains"
        text += "".join(f", {words} on {m}" for words, m in rest)
        when = ", adapted," if line.adapts else ""
        sentences.setdefault(f"{line.label}{when} {text}.", head)
    return list(sentences)


def remarks(summary: Summary) -> list[str]:
    """What to know of the numbers."""
    cut = f"An R² below {summary.scale.value(summary.scale.floor)} is shown, and counted, as that."
    return [cut] if summary.is_cut else []


def screen(summary: Summary) -> str:
    """What a terminal shows at the end of a bench."""
    parts = [
        summary.title,
        filled(str(advise(summary))),
        score_table(summary, brief=True).text(),
        "\n".join(filled(f"{label}: {means}", indent="  ") for label, means in meanings(summary)),
        *map(filled, [*remarks(summary), *chosen(summary)]),
    ]
    if len(summary.failures):
        first = summary.failures.iloc[0]
        text = (
            f"{counted(len(summary.failures), 'fit')} failed, the first of "
            f"{summary.lines[first['head']].name} on '{first['held_out']}': {first['reason']}"
        )
        parts.append(filled(text))
    return printable("\n\n".join(part for part in parts if part))
