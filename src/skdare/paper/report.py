"""What a study found: the paper's tables, with the published figures in brackets, and its page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files
from pathlib import Path

import pandas as pd

from skdare.bench.record import Record, RecordFile
from skdare.errors import InputError, printable
from skdare.paper.ceilings import DESCENT, EXACT
from skdare.paper.drawing import THEMES, drawn
from skdare.paper.experiment import END_TO_END, NETWORK
from skdare.paper.figure_one import figure_one, plot_figure_one
from skdare.paper.plan import ABLATION, GIVEN, PRETRAINED
from skdare.paper.protocol import ADAPTED, MAIN_HEADS
from skdare.paper.published import Published
from skdare.paper.statistics import half_width, paired_t

NAMES = {
    "erm": "ERM",
    "reweighted": "Reweighted",
    "groupdro": "GroupDRO",
    "irm": "IRM",
    "dare": "DARE",
    "dare-adapted": "DARE adapted†",
    "no-whitening": "DARE, no whitening",
    "no-constraint": "DARE, no constraint",
    "estimated-mean": "DARE, estimated mean",
    EXACT: "ceiling",
    DESCENT: "ceiling by descent",
    END_TO_END: "end to end",
    NETWORK: "ERM network",
}
_WIDTH = 80


@dataclass(frozen=True)
class Table:
    """Cells that are text already.

    Parameters
    ----------
    title : str
    corner : str
        Heading of the first column.
    columns : sequence of str
    rows : sequence of (label, cells)
        The last is the average.
    notes : sequence of str
    """

    title: str
    corner: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[str] = ()

    def text(self, width: int = _WIDTH) -> str:
        """Lines for a terminal; columns that do not fit go below."""
        first = max(len(self.corner), *(len(label) for label, _ in self.rows)) + 2
        cells = [self.columns, *(row for _, row in self.rows)]
        widths = [max(len(row[j]) for row in cells) + 2 for j in range(len(self.columns))]
        parts: list[list[int]] = [[]]
        for j, own in enumerate(widths):
            if parts[-1] and first + sum(widths[i] for i in parts[-1]) + own > width:
                parts.append([])
            parts[-1].append(j)
        blocks = []
        for part in parts:
            lines = []
            for label, row in [(self.corner, self.columns), *self.rows]:
                cells_of = "".join(row[j].rjust(widths[j]) for j in part)
                lines.append(f"{label:<{first}}{cells_of}".rstrip())
            blocks.append("\n".join(lines))
        return "\n\n".join([self.title, *blocks, *self.notes])


def frame_of(records: Iterable[Record]) -> pd.DataFrame:
    """Records of the paper's protocol, a row for each score; what failed has none."""
    rows = [
        {
            "study": record.study,
            "head": "dare-adapted" if record.head == "adapted" else record.head,
            "features": record.values.get("features", GIVEN),
            "held_out": record.held_out,
            "trial": record.trial,
            "x": record.values.get("x"),
            "score": math.nan if record.score is None else record.score,
            "reason": record.reason,
        }
        for record in records
        if record.values.get("protocol") == "paper"
    ]
    names = ["study", "head", "features", "held_out", "trial", "x", "score", "reason"]
    return pd.DataFrame(rows, columns=names)


@dataclass(frozen=True, eq=False)
class Study:
    """Scores of a run under the paper's protocol, and published ones of the same study.

    Parameters
    ----------
    name : str
    frame : DataFrame
        As `frame_of` makes it.
    published : Published, optional
    """

    name: str
    frame: pd.DataFrame
    published: Published | None = None

    @classmethod
    def read(cls, folder: str | Path) -> Study:
        """The study whose records are in a folder."""
        file = RecordFile(folder)
        records = file.records()
        frame = frame_of(records)
        if frame.empty:
            raise InputError(
                f"'{file.folder}' has no records of the paper's protocol",
                "give the folder bench of what `skdare reproduce` wrote",
            )
        return cls(records[0].data, frame, Published.read(file.folder))

    def scores(self, study: str, features: str = GIVEN) -> pd.DataFrame:
        """Scores by (trial, held-out domain) and head; without those that a study varies."""
        chosen = self.frame[(self.frame["study"] == study) & (self.frame["features"] == features)]
        # All subsets of training domains count alike.
        wide = chosen.pivot_table(
            index=["trial", "held_out"], columns="head", values="score", sort=False
        )
        return wide[list(dict.fromkeys(chosen["head"]))] if len(wide) else wide

    @property
    def trials(self) -> int:
        return int(self.frame["trial"].nunique())

    @property
    def failures(self) -> list[str]:
        failed = self.frame[self.frame["score"].isna()]
        return [f"{r.head} on '{r.held_out}': {r.reason}" for r in failed.itertuples()]

    def tables(self) -> Iterator[Table]:
        """Table 1, ceilings, Tables 2 and 3, and the ablations, as far as they were measured."""
        yield from self._main()
        yield from self._ceilings()
        for study, title in (
            ("adjustment", "Error of the guessed adjustment of the held-out domain"),
            ("alignment", "Cosine of the classifiers of single training domains"),
        ):
            scores = self.scores(study)
            if len(scores):
                names = {str(head): str(head) for head in scores}
                yield self._table(title, study, scores, names, digits=3, factor=1.0)
        for study in dict.fromkeys(self.frame["study"]):
            if study.startswith(ABLATION):
                yield self._ablation(study)

    def _main(self) -> Iterator[Table]:
        scores = self.scores("main")
        if not len(scores):
            return
        heads = [head for head in MAIN_HEADS if head in scores]
        names = {head: NAMES[head] for head in heads}
        notes = []
        if any(head in ADAPTED for head in heads):
            notes.append("† uses unlabelled rows of the held-out domain.")
        average = self._averages(scores)
        better = {
            head: paired_t(average[head].to_numpy(), average["erm"].to_numpy())
            for head in heads
            if head != "erm" and "erm" in average
        }
        if self.trials > 1:
            listed = ", ".join(
                f"{names[head]} {p:.2f}" for head, p in better.items() if math.isfinite(p)
            )
            notes.append(
                "± is the 90 % interval as the paper prints it, which covers 76 times in 100 "
                f"for three trials. p that the average is above ERM's: {listed}."
            )
        title = "Accuracy in % on the held-out domain, on rows set aside"
        yield self._table(title, "main", scores[heads], names, notes=notes)

    def _ceilings(self) -> Iterator[Table]:
        parts = [self.scores("network"), self.scores("ceiling")]
        before = self.scores("ceiling", PRETRAINED)
        parts.append(before.rename(columns={head: f"{head} {PRETRAINED}" for head in before}))
        parts = [part for part in parts if len(part)]
        if not parts:
            return
        scores = pd.concat(parts, axis=1)
        names = {
            str(head): NAMES.get(str(head), "")
            or f"{NAMES[str(head).removesuffix(f' {PRETRAINED}')]}, {PRETRAINED}"
            for head in scores
        }
        note = "Ceilings, and the network end to end, have seen labels of the held-out domain."
        yield self._table("Networks and ceilings", "", scores, names, notes=[note])

    def _table(
        self,
        title: str,
        study: str,
        scores: pd.DataFrame,
        names: dict[str, str],
        *,
        digits: int = 1,
        factor: float = 100.0,
        notes: Sequence[str] = (),
    ) -> Table:
        """A row for each held-out domain and one for their average by trial."""
        known = [] if self.published is None else self.published.lines
        lines = [line for kind, line in known if kind == study]
        gains = study == "main" and {"erm", "dare"} <= set(names)
        if gains:  # what the paper is about; by trial, as the mean of what both have
            scores = scores.assign(gain=scores["dare"] - scores["erm"])
        rows = []
        held_out = scores.index.get_level_values("held_out")
        domains = list(dict.fromkeys(held_out))
        for label, chosen in [*((d, [d]) for d in domains), ("average", domains)]:
            means = {line: self._published(study, line, chosen) for line in lines}
            if gains and {"erm", "dare"} <= set(lines):
                means["gain"] = means["dare"] - means["erm"]
            cells = []
            for head in [*names, *(["gain"] if gains else [])]:
                values = scores[head][held_out.isin(chosen)].groupby("trial").mean().dropna()
                cell = _number(values.mean() if len(values) else math.nan, factor, digits)
                cell = f"+{cell}" if head == "gain" and cell[0] not in "-–" else cell
                spread = half_width(values.to_numpy(), normal=True)
                if math.isfinite(spread):
                    cell += f" ± {factor * spread:.{digits}f}"
                if head in means:
                    cell += f" ({_by_hand(means[head], digits, signed=head == 'gain')})"
                cells.append(cell.replace("-", "\N{MINUS SIGN}"))
            rows.append((label, cells))
        if lines and self.published is not None:
            notes = [*notes, f"In brackets: {self.published.source}."]
        columns = [*names.values(), *(["DARE \N{MINUS SIGN} ERM"] if gains else [])]
        return Table(title, "held out", columns, rows, notes)

    def _published(self, study: str, line: str, domains: Sequence[str]) -> Decimal:
        assert self.published is not None
        return self.published.mean(study, line, domains)

    def _averages(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Averages over held-out domains, by trial."""
        return scores.groupby("trial").mean()

    def _ablation(self, study: str) -> Table:
        name = study.removeprefix(ABLATION)
        chosen = self.frame[self.frame["study"] == study]
        if chosen["x"].isna().all():
            scores = self.scores(study)
            names = {str(head): NAMES[str(head)] for head in scores}
            return self._table(f"Ablation: {name}", "", scores, names)
        kinds = chosen["head"].where(chosen["features"] == GIVEN, chosen["head"] + f" {PRETRAINED}")
        means = chosen.assign(kind=kinds).pivot_table(index="x", columns="kind", values="score")
        rows = [
            (f"{x:g}", [_number(value, 100.0, 1) for value in row])
            for x, row in zip(means.index, means.to_numpy(), strict=True)
        ]
        labels = []
        for kind in means:
            head = str(kind).removesuffix(f" {PRETRAINED}")
            labels.append(NAMES[head] + (", pretrained" if head != kind else ""))
        title = f"Ablation: {name}; mean accuracy in % over held-out domains"
        return Table(title, name, labels, rows)

    def text(self) -> str:
        """All tables for a terminal."""
        parts = [table.text() for table in self.tables()]
        if self.failures:
            parts.append(f"{len(self.failures)} fits failed, the first: {self.failures[0]}")
        return printable("\n\n\n".join(parts))

    def page(self) -> str:
        """All tables and the first figure as one page of HTML."""
        from jinja2 import Environment

        template = files("skdare.paper").joinpath("report.html").read_text(encoding="utf-8")
        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        text = environment.from_string(template).render(
            name=self.name,
            figure=figure_one(self.bars()),
            tables=list(self.tables()),
            failures=self.failures,
            trials=self.trials,
        )
        return printable(text)

    def figure(self) -> bytes:
        """The first figure as SVG; empty without a head to show."""
        bars = self.bars()
        if not {"ERM", "DARE"} & set(bars):
            return b""
        light = THEMES["light"]
        return drawn(lambda axes, theme: plot_figure_one(bars, axes, theme), 3.4, light, "svg")

    def bars(self) -> pd.DataFrame:
        """The bars of the paper's first figure: a column for each, a row for each domain."""
        main, ceilings = self.scores("main"), self.scores("ceiling")
        before, networks = self.scores("ceiling", PRETRAINED), self.scores("network")
        linear = DESCENT if DESCENT in ceilings else EXACT
        sources = {
            "ERM network": (networks, NETWORK),
            "ERM": (main, "erm"),
            "DARE": (main, "dare"),
            "Linear ceiling*": (ceilings, linear),
            "End-to-end ceiling*": (ceilings, END_TO_END),
            "Linear ceiling, pretrained*": (before, linear),
        }
        columns = {
            name: scores[head].groupby("held_out", sort=False).mean()
            for name, (scores, head) in sources.items()
            if len(scores) and head in scores
        }
        bars = pd.DataFrame(columns)
        return pd.concat([bars, bars.mean().to_frame("average").T])


def _by_hand(value: Decimal, digits: int, *, signed: bool) -> str:
    """A published number, rounded as it would be by hand: 83.85 to 83.9."""
    if value.is_nan():
        return "–"
    rounded = value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:+f}" if signed else f"{rounded:f}"


def _number(value: float, factor: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{factor * value:.{digits}f}"
