"""Numbers as people read them: scores on a scale, differences, p-values, times."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from skdare._safe_text import typographic

NONE = "–"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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

    def prose(self, value: float) -> str:
        """The value in a sentence."""
        return self.article + self.value(value) + self.unit

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
    return Scale(
        name, name, 1.0, 2, "", f" in {name}", "", f"{article} {name} of ", lowest, 1.0, **more
    )


SCALES = {
    "accuracy": _share("accuracy"),
    "balanced_accuracy": _share("balanced accuracy"),
    "f1_macro": _index("macro F1", "a", 0.0),
    "roc_auc": _index("ROC AUC", "a", 0.0, useless=0.5, uselessness="no better than guessing"),
    "r2": _index(
        "R²", "an", -math.inf, useless=0.0, uselessness="no better than predicting its mean"
    ),
    "neg_log_loss": Scale("negative log loss", "negative log loss", 1.0, 3),
    "neg_root_mean_squared_error": Scale("negative RMSE", "negative RMSE", 1.0, 3),
    "neg_mean_absolute_error": Scale("negative MAE", "negative MAE", 1.0, 3),
    "rmse": Scale("RMSE", "RMSE (units of the target)", 1.0, 3),
    "error": Scale("normalised error", "normalised error", 1.0, 3),
    "cosine": Scale("cosine similarity", "cosine similarity", 1.0, 3),
}


def scale_of(metric: str, values: Iterable[float] = ()) -> Scale:
    """The scale of a metric; an RMSE, in the target's units, gets about four digits."""
    scale = SCALES.get(metric, Scale(metric, metric, 1.0, 3))
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    if metric != "rmse" or not largest:
        return scale
    return replace(scale, digits=max(0, 3 - math.floor(math.log10(largest))))


def _without_sign_of_zero(text: str) -> str:
    """A number as text, typographic; one that rounds to zero has no sign."""
    return typographic(text if text.strip("-0.") else text.removeprefix("-"))


def spread(scale: Scale, half_width: float, *, sign: bool = True) -> str:
    """The half width of an interval as text; empty if it is missing."""
    if math.isnan(half_width):
        return ""
    text = f"{scale.scaled(half_width):.{scale.digits}f}"
    return f"± {text}" if sign else text


def p_value(p: float) -> str:
    """A p-value to three decimals."""
    return NONE if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def number(x: float) -> str:
    """A value of a varied quantity: powers of ten far from one as such, others in full."""
    power = math.log10(abs(x)) if x else 0.0
    if power == round(power) and abs(power) > 3:
        return "10" + str(round(power)).translate(_SUPERSCRIPT)
    return typographic(f"{x:.4g}" if abs(x) < 10_000 else f"{x:,.0f}")


def duration(seconds: float) -> str:
    """``12.3 s``, ``3 min 12 s``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
