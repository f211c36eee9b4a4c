"""Warnings of a fit about odd features and rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skdare.arrays import to_numpy
from skdare.errors import note
from skdare.fitting.lagrangian import Formulation
from skdare.fitting.problem import Problem
from skdare.fitting.safety_check import has_outliers
from skdare.whitening.moments import FeatureMoments, Moments, overall_variances

# Share of variance in the second moment below which the offset dominates: an offset of three
# standard deviations has 0.1, and costs six points of training accuracy on unit-variance features;
# the PACS features, with no harm seen, have 0.3 to 0.4.
_OFFSET = 0.1


def note_odd_features(
    problem: Problem, moments: Sequence[Moments | FeatureMoments], l2: float
) -> None:
    """Domains in which nothing varies, and a feature that sets the unit of all others."""
    variances = overall_variances(moments, problem.X.dtype)
    pairs = zip(problem.labels, moments, strict=True)
    constant = [name for name, m in pairs if not to_numpy(m.variances).any()]
    if constant:
        more = f" (and of {len(constant) - 1} more)" if len(constant) > 1 else ""
        note(
            f"the rows of domain {constant[0]!r}{more} are all the same; check how it was "
            "recorded, or leave it out"
        )
    top = int(variances.argmax())
    share = variances[top] / variances.sum()
    if l2 and share > 0.5 and variances[top] > 25 * np.median(variances):
        note(
            f"{problem.feature(top)} holds {share:.0%} of the variance of all features, and l2 "
            "treats the others as small; set preparation=StandardScaler()"
        )


def note_odd_moments(
    problem: Problem, moments: Sequence[Moments], unseen: Formulation, adapting: Formulation | None
) -> None:
    """Rows that decide a domain's second moment, and an offset that dominates uncentred moments."""
    varying = [m for m in moments if m.trace > 0]
    if not varying:
        return
    pairs = zip(problem.labels, moments, strict=True)
    outlying = [name for name, m in pairs if has_outliers(m)]
    if outlying:
        more = f" (and of {len(outlying) - 1} more)" if len(outlying) > 1 else ""
        note(
            f"one or two of the rows of domain {outlying[0]!r}{more} hold most of their variance, "
            "and decide how the others are adjusted; look for outliers, or clip the features"
        )
    whitenings = [one.whitening for one in (unseen, adapting) if one is not None]
    if any(whitening.adjusts and not whitening.centered for whitening in whitenings):
        varied = np.mean([m.scale(centered=True) / m.scale(centered=False) for m in varying])
        effect = "the raw second moment is nearly that of the mean"
    elif unseen.mean_penalty != 0:
        # Means that differ are what the penalty is for; one that all domains share is not.
        means = np.stack([m.mean for m in varying])
        variance = np.mean([m.scale(centered=True) for m in varying]) + means.var(axis=0).mean()
        varied = variance / (variance + np.mean(means.mean(axis=0) ** 2))
        effect = "mean_penalty removes all that lies along it"
    else:
        return
    if varied < _OFFSET:
        note(
            f"the features vary little compared with their mean ({varied:.1%} of their second "
            f"moment), and {effect}; set preparation=StandardScaler(), or centered=True, "
            "mean_penalty=0 and adaptation='centered'"
        )
