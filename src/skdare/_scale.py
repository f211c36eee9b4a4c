"""Scales of metrics: how a score, a range of scores and a difference are written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from skdare._safe_text import typographic

NONE = "–"


@dataclass(frozen=True)
class Scale:
    """How a metric is written.

    Parameters
    ----------
    name : str
        In a sentence.
    axis : str
        Beside an axis or in a caption, with its unit.
    factor : float
    digits : int
    point : str
        What a difference is counted in.
    within : str
        What it is a difference in, where the unit does not say.
    unit : str
        After a value in a sentence.
    article : str
        Before a value in a sentence, where the unit does not say what it is.
    lowest, highest : float
        Ends of what can be.
    useless : float, optional
        A score that a constant prediction reaches.
    uselessness : str
        What a score at or below that is.
    of_target : bool
        Whether it is in units of the target, so that its size tells how many digits it needs.
    """

    name: str
    axis: str
    factor: float
    digits: int
    point: str = ""
    within: str = ""
    unit: str = ""
    article: str = ""
    lowest: float = -math.inf
    highest: float = math.inf
    useless: float | None = None
    uselessness: str = ""
    of_target: bool = False

    @property
    def title(self) -> str:
        """The axis at the head of a caption."""
        return self.axis[:1].upper() + self.axis[1:]

    def scaled(self, value: float) -> float:
        """The value in the unit of the axis."""
        return self.factor * value

    def value(self, value: float) -> str:
        """The value as text; a dash stands for a missing one."""
        if math.isnan(value):
            return NONE
        return _without_sign_of_zero(f"{self.scaled(value):.{self.digits}f}")

    def figure(self, value: float) -> str:
        """The value with its unit, where its name stands beside it."""
        return NONE if math.isnan(value) else self.value(value) + self.unit

    def prose(self, value: float) -> str:
        """The value in a sentence, with its name where the unit does not say what it is."""
        return self.article + self.figure(value)

    def span(self, low: float, high: float) -> str:
        """Two ends of a range of values, no finer than it is sure, cut to what can be."""
        digits = 0 if self.unit else self.digits
        ends = (max(low, self.lowest), min(high, self.highest))
        low_text, high_text = (f"{self.scaled(end):.{digits}f}" for end in ends)
        return f"{_without_sign_of_zero(low_text)} to {_without_sign_of_zero(high_text)}"

    def gain(self, value: float) -> str:
        """A difference with its sign; one that rounds to zero has none."""
        if math.isnan(value):
            return NONE
        text = f"{self.scaled(value):+.{self.digits}f}"
        return typographic(text if text.strip("+-0.") else text[1:])

    def counted_gain(self, value: float) -> str:
        """A difference with its sign, and what it is counted in."""
        return self.gain(value) + self.point

    def distance(self, value: float) -> str:
        """A difference without its sign, in a sentence."""
        return self.value(abs(value)) + self.point

    def interval(self, low: float, high: float) -> str:
        """The two ends of an interval of differences."""
        if math.isnan(low):
            return NONE
        return f"{self.gain(low)} to {self.gain(high)}"


def _share(name: str) -> Scale:
    """The scale of a share, written as a percentage."""
    return Scale(name, f"{name} (%)", 100.0, 1, " points", unit=" %", lowest=0.0, highest=1.0)


def _index(name: str, article: str, lowest: float, **more: Any) -> Scale:
    """The scale of a number that is at most one and no share."""
    return replace(_plain(name, article, 2, **more), lowest=lowest, highest=1.0)


def _plain(name: str, article: str, digits: int = 3, **more: Any) -> Scale:
    """The scale of a number without a unit of its own."""
    return Scale(
        name,
        more.pop("axis", name),
        1.0,
        digits,
        within=f" in {name}",
        article=f"{article} {name} of ",
        **more,
    )


def _in_units(name: str, article: str, **more: Any) -> Scale:
    """The scale of a number in units of the target."""
    axis = f"{name} (units of the target)"
    return _plain(name, article, axis=axis, of_target=True, **more)


SCALES = {
    "accuracy": _share("accuracy"),
    "balanced_accuracy": _share("balanced accuracy"),
    "f1_macro": _index("macro F1", "a", 0.0),
    "roc_auc": _index("ROC AUC", "a", 0.0, useless=0.5, uselessness="no better than guessing"),
    "roc_auc_ovr": _index("ROC AUC", "a", 0.0, useless=0.5, uselessness="no better than guessing"),
    "r2": _index(
        "R²", "an", -math.inf, useless=0.0, uselessness="no better than predicting its mean"
    ),
    "neg_log_loss": _plain("negative log loss", "a", highest=0.0),
    "neg_root_mean_squared_error": _in_units("negative RMSE", "a", highest=0.0),
    "neg_mean_absolute_error": _in_units("negative MAE", "a", highest=0.0),
    "rmse": _in_units("RMSE", "an", lowest=0.0),
    "error": _plain("normalised error", "a", lowest=0.0),
    "cosine": _plain("cosine similarity", "a", lowest=-1.0, highest=1.0),
}


def scale_of(metric: str, values: Iterable[float] = ()) -> Scale:
    """The scale of a metric; one in units of the target gets about four digits of these values."""
    scale = SCALES.get(metric) or _plain(metric, "a")
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    if not scale.of_target or not largest:
        return scale
    return replace(scale, digits=max(0, 3 - math.floor(math.log10(largest))))


def _without_sign_of_zero(text: str) -> str:
    """A number as text, typographic; one that rounds to zero has no sign."""
    return typographic(text if text.strip("-0.") else text.removeprefix("-"))
