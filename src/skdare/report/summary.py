"""Records of a bench as one frame, and the numbers of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import pandas as pd

from skdare.bench.heads import HEADS
from skdare.bench.record import ABOUT, NOTHING, Record, RecordFile
from skdare.choosing.strategies import STRATEGIES
from skdare.errors import InputError, counted, listed
from skdare.report.scales import Scale, scale_of
from skdare.report.statistics import Gain, holm


@dataclass(frozen=True)
class Line:
    """Name and description of a head in a report."""

    label: str
    adapts: bool
    means: str
    fits: str

    @property
    def name(self) -> str:
        """The label in a sentence."""
        return "ERM standardised by hand" if self.fits == "by-hand" else self.label


@dataclass(frozen=True, eq=False)
class Summary:
    """A run: what was compared, and a row for each trial.

    Print it for what ``skdare bench`` shows; in a notebook it shows itself.

    Parameters
    ----------
    about : dict
        What the run compares: data, rows, features, domains.
    frame : DataFrame
        Columns head, held_out, trial, uses, metric, score, seconds, reason, chosen, declined, l2,
        n_test, majority, warnings.
    """

    about: dict[str, Any]
    frame: pd.DataFrame

    @classmethod
    def of(cls, file: RecordFile, data: str = "") -> Self:
        """The summary of a run; ``data`` names one of several tables in one folder."""
        records = [record for record in file.records() if record.study == "main"]
        if not records:
            raise InputError(f"'{file.folder}' has no records", "run skdare bench first")
        about = file.about()
        counts = [about.get(name, 0) for name in ("rows", "features", "classes", "domains")]
        if not all(type(count) is int for count in counts):
            what = f"'{file.folder}' has a damaged {ABOUT}"
            raise InputError(what, "delete that file, and run skdare bench again")
        names = list(dict.fromkeys(record.data for record in records))
        if data not in (names if len(names) > 1 else ["", *names]):
            raise InputError(f"'{file.folder}' has records of {listed(names)}", "name one of them")
        records = [record for record in records if record.data == (data or names[0])]
        return cls(about | {"data": data or names[0]}, frame_of(records))

    @cached_property
    def lines(self) -> dict[str, Line]:
        """Every head: the baseline first, then those that saw nothing of the held-out domain."""
        first = self.frame.drop_duplicates("head").set_index("head")
        lines = {}
        for head, row in first.iterrows():
            known = HEADS.get(str(head))
            lines[str(head)] = Line(
                row["label"] or (known.label if known else str(head)),
                row["uses"] != NOTHING,
                known.means if known else "",
                known.fits if known else "",
            )
        order = sorted(lines, key=lambda head: (lines[head].adapts, head != "erm"))
        return {head: lines[head] for head in order}

    @property
    def baseline(self) -> str:
        """The head that the others are compared with: ERM, if it is there."""
        return next(iter(self.lines))

    @property
    def metric(self) -> str:
        return str(self.frame["metric"].iloc[0])

    @cached_property
    def scale(self) -> Scale:
        return scale_of(self.metric, self.frame["score"], self.about.get("classes"))

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Mean score of every head (column) on every held-out domain (row); NaN if it failed.

        No lower than the floor of the metric; ``frame`` has the scores as they were.
        """
        each = self.frame.groupby(["held_out", "head"])["score"]
        table = each.agg(lambda scores: scores.mean(skipna=False)).unstack()
        return table.reindex(columns=list(self.lines)).clip(lower=self.scale.floor)

    @property
    def is_cut(self) -> bool:
        """Whether a score is below the floor of the metric."""
        return bool((self.frame["score"] < self.scale.floor).any())

    def gain(self, head: str, over: str = "") -> Gain:
        """Differences between two heads, domain by domain; by default from the baseline."""
        return Gain((self.scores[head] - self.scores[over or self.baseline]).dropna())

    @cached_property
    def p_values(self) -> dict[str, float]:
        """Holm-adjusted one-sided p-value of the gain of each head over the baseline."""
        return holm({head: self.gain(head).p for head in self.lines if head != self.baseline})

    @property
    def failures(self) -> pd.DataFrame:
        return self.frame[self.frame["score"].isna()][["head", "held_out", "reason"]]

    @cached_property
    def warnings(self) -> dict[str, int]:
        """Warnings of fits, and how many gave each, the most frequent first."""
        return dict(
            Counter(text for texts in self.frame["warnings"] for text in texts).most_common()
        )

    def choices(self, head: str) -> dict[str, int]:
        """What a head that chooses chose, in words, and on how many held-out domains.

        Empty words stand for adapting that was declined.
        """
        rows = self.frame[(self.frame["head"] == head) & (self.frame["trial"] == 0)]
        counts: Counter[str] = Counter()
        for name, declined in zip(rows["chosen"], rows["declined"], strict=True):
            if name:
                words = STRATEGIES[name].words if name in STRATEGIES else name
                counts["" if declined else words] += 1
        return dict(counts.most_common())

    @property
    def title(self) -> str:
        """What was compared, in one line."""
        about = self.about
        parts = [
            counted(about[key], noun, plural)
            for key, noun, plural in (
                ("rows", "row", ""), ("features", "feature", ""), ("classes", "class", "classes")
            )
            if key in about
        ]  # fmt: skip
        parts.append(counted(about.get("domains", len(self.scores)), "domain"))
        return f"{about['data']}: {', '.join(parts)}"

    def tidy(self) -> pd.DataFrame:
        """Every number of the report, one in a row: scores by domain, gains, intervals and p."""
        scores = self.scores.reset_index().melt("held_out", var_name="head", value_name="value")
        scores.insert(0, "statistic", "score")
        means = [
            {
                "statistic": "mean",
                "held_out": "all",
                "head": head,
                "value": self.scores[head].mean(),
            }
            for head in self.lines
        ]
        gains = []
        for head, p in self.p_values.items():
            gain = self.gain(head)
            low, high = gain.interval
            found = {"gain": gain.mean, "gain low": low, "gain high": high}
            for name, value in (found | {"better": gain.better, "p": p}).items():
                gains.append({"statistic": name, "held_out": "all", "head": head, "value": value})
        table = pd.concat([scores, pd.DataFrame([*means, *gains])], ignore_index=True)
        return table.dropna(subset="value", ignore_index=True)

    def plot(self, ax: Any = None) -> Any:
        """Differences from the baseline on matplotlib axes: a dot for each held-out domain."""
        from skdare.report.figures import plot_gains

        return plot_gains(self, ax)

    def page(self) -> str:
        """The report as one HTML page that needs nothing else."""
        from skdare.report.page import page

        return page(self)

    def __str__(self) -> str:
        from skdare.report.tables import screen

        return screen(self)

    def _repr_html_(self) -> str:
        from skdare.report.page import fragment

        return fragment(self)


def frame_of(records: Iterable[Record]) -> pd.DataFrame:
    """Records as rows of a data frame."""
    rows = []
    for record in records:
        values = record.values
        rows.append(
            {
                "head": record.head,
                "held_out": record.held_out,
                "trial": record.trial,
                "uses": record.uses,
                "metric": record.metric,
                "score": float("nan") if record.score is None else float(record.score),
                "seconds": record.seconds,
                "reason": record.reason,
                "label": str(values.get("label", "")),
                "chosen": str(values.get("chosen") or ""),
                "declined": bool(values.get("declined")),
                "l2": values.get("l2"),
                "n_test": values.get("n_test"),
                "majority": values.get("majority"),
                "warnings": [str(text) for text in values.get("warnings") or []],
            }
        )
    return pd.DataFrame(rows)
