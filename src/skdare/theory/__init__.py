"""The paper's model of distribution shift, its theorems and their quantities, as code."""

from collections.abc import Callable

from skdare.diagnosis import effective_rank, eigengap
from skdare.theory._adjustment_error import adjustment_error_bound, adjustment_spread, condition_m
from skdare.theory._adversary import Adversary, adjustment_difference, averaged_guess, excess_risk
from skdare.theory._anchors import (
    population_anchor,
    population_dare,
    population_whitened_anchor,
)
from skdare.theory._attack import attack, supremum_with_means
from skdare.theory._budget import Block, attack_blocks, worst_case
from skdare.theory._chapter_adversary import adversary_chapter
from skdare.theory._chapter_anchors import anchors_chapter
from skdare.theory._chapter_closed_form import closed_form_chapter
from skdare.theory._chapter_environments import environments_chapter
from skdare.theory._chapter_just_in_time import just_in_time_chapter
from skdare.theory._claim import VERDICTS, Chapter, Chart, Claim, Curve, Map
from skdare.theory._closed_form import (
    Attenuation,
    ClosedForm,
    closed_form,
    logistic_scale,
    mean_null_projection,
    pooled_regression,
    sampled_logistic,
)
from skdare.theory._environments import environment_bound, environment_risk, expected_kept
from skdare.theory._just_in_time import (
    JustInTime,
    just_in_time_bound,
    just_in_time_expected,
    just_in_time_risk,
)
from skdare.theory._laws import LAWS
from skdare.theory._model import LatentDomain, LatentModel
from skdare.theory._roots import eigen_root, symmetric_root

__all__ = [
    "CHAPTERS",
    "LAWS",
    "VERDICTS",
    "Adversary",
    "Attenuation",
    "Block",
    "Chapter",
    "Chart",
    "Claim",
    "ClosedForm",
    "Curve",
    "JustInTime",
    "LatentDomain",
    "LatentModel",
    "Map",
    "adjustment_difference",
    "adjustment_error_bound",
    "adjustment_spread",
    "attack",
    "attack_blocks",
    "averaged_guess",
    "closed_form",
    "condition_m",
    "effective_rank",
    "eigen_root",
    "eigengap",
    "environment_bound",
    "environment_risk",
    "excess_risk",
    "expected_kept",
    "just_in_time_bound",
    "just_in_time_expected",
    "just_in_time_risk",
    "logistic_scale",
    "mean_null_projection",
    "pooled_regression",
    "population_anchor",
    "population_dare",
    "population_whitened_anchor",
    "sampled_logistic",
    "supremum_with_means",
    "symmetric_root",
    "worst_case",
]

# Called with a seed, and whether to be quick.
CHAPTERS: dict[str, Callable[[int, bool], Chapter]] = {
    "closed forms": closed_form_chapter,
    "worst cases": adversary_chapter,
    "number of domains": environments_chapter,
    "just-in-time adaptation": just_in_time_chapter,
    "anchor regression": anchors_chapter,
}
