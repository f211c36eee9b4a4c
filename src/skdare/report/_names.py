"""What heads, rows, features and ablations are called in a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_LABELS = {
    "erm": "ERM",
    "reweighted": "Reweighted",
    "groupdro": "GroupDRO",
    "irm": "IRM",
    "anchor": "Anchor",
    "dare": "DARE",
    "adapted": "DARE adapted",
    "dare-cv": "DARE-CV",
    "dare-cv-adapted": "DARE-CV adapted",
    "no-whitening": "DARE, no whitening",
    "no-constraint": "DARE, no constraint",
    "exact-constraint": "DARE, exact constraint",
    "estimated-mean": "DARE, estimated mean",
    "ceiling-exact": "Linear ceiling",
    "ceiling-sgd": "Linear ceiling by SGD",
    "end-to-end": "End-to-end ceiling",
    "network": "ERM network",
    "retrain": "Retrained on its rows alone",
    "retrain+sources": "Retrained with training domains",
    "averaged adjustment": "Averaged adjustment",
    "averaged scalar": "Averaged scalar",
    "with adjustment": "With adjustment",
    "without adjustment": "Without adjustment",
}


def label(line: str) -> str:
    """A head or line as prose and figures call it."""
    name, _, more = line.partition(" (")
    shown = _LABELS.get(name, name)
    more = more.removesuffix(")").replace("pretrained features", "pretrained")
    return f"{shown}, {more}" if more else shown


# Heads of the bench that are adapted, and the heads that they are before.
_ADAPTED_FROM = {"adapted": "dare", "dare-cv-adapted": "dare-cv"}


@dataclass(frozen=True)
class Naming:
    """What heads and lines are called: as the user wrote, or else by `label`.

    Parameters
    ----------
    own : mapping from str to str
        Heads that a user named, and what each was called before it was adapted; empty for one that
        is not adapted.
    """

    own: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, line: str) -> str:
        return line if line in self.own else label(line)

    def before_adapting(self, head: str) -> str:
        """What a head is called before it is adapted; empty for one that is not."""
        if head in self.own:
            return self.own[head]
        return label(_ADAPTED_FROM[head]) if head in _ADAPTED_FROM else ""


# Rows of the held-out domain that a line was scored on.
ROWS = {
    "reserved": "its rows set aside",
    "rest": "its rows not set aside",
    "all": "all its rows",
    "unknown": "rows that were not recorded",
}
# What has features of its own.
FEATURES = {
    "data": "one table for all",
    "held-out domain": "a table for each held-out domain",
    "trial": "a table for each held-out domain and trial",
}
# Ablation: its heading, what varies, and what the reader is to look for.
ABLATIONS = {
    "whitening": (
        "Whitening",
        "",
        "What the domain-wise covariance adjustment does: DARE with it and without.",
    ),
    "constraint": (
        "Constraint on the means",
        "",
        "What the constraint on the domain means does: without it, as a penalty, and met exactly.",
    ),
    "mean": (
        "Mean of the new domain",
        "",
        "In place of the constraint, training rows are centred by domain, and new rows by the "
        "average of the training means.",
    ),
    "lambda": (
        "Strength of the penalty",
        "penalty λ",
        "λ = 0 is no constraint; it stands apart on the axis.",
    ),
    "shrinkage": ("Shrinkage", "shrinkage ρ", "How strongly each covariance is shrunk."),
    "dimension": (
        "Feature dimension",
        "feature dimension",
        "The features are projected to fewer dimensions; scored on the reserved rows.",
    ),
    "domains": (
        "Number of training domains",
        "training domains",
        "The same held-out domains with fewer domains to train on.",
    ),
}


def ablation(name: str) -> tuple[str, str, str]:
    """Heading, name of what varies, and a sentence."""
    return ABLATIONS.get(name, (name.capitalize(), name, ""))
