"""The paper's model of distribution shift, its theorems and their quantities, as code."""

from collections.abc import Callable

from skdare.theory._adversary import Adversary, averaged_guess, excess_risk, guess_error
from skdare.theory._anchors import (
    population_anchor,
    population_dare,
    population_whitened_anchor,
)
from skdare.theory._attack import attack
from skdare.theory._budget import worst_case
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
)
from skdare.theory._environments import environment_bound, environment_risk
from skdare.theory._just_in_time import (
    JustInTime,
    just_in_time_bound,
    just_in_time_expected,
    just_in_time_risk,
)
from skdare.theory._laws import LAWS
from skdare.theory._model import LatentDomain, LatentModel
from skdare.theory._roots import eigen_root, symmetric_root
from skdare.theory._whitening_error import condition_m, whitening_error_bound

__all__ = [
    "CHAPTERS",
    "LAWS",
    "VERDICTS",
    "Adversary",
    "Attenuation",
    "Chapter",
    "Chart",
    "Claim",
    "ClosedForm",
    "Curve",
    "JustInTime",
    "LatentDomain",
    "LatentModel",
    "Map",
    "attack",
    "averaged_guess",
    "closed_form",
    "condition_m",
    "eigen_root",
    "environment_bound",
    "environment_risk",
    "excess_risk",
    "guess_error",
    "just_in_time_bound",
    "just_in_time_expected",
    "just_in_time_risk",
    "logistic_scale",
    "mean_null_projection",
    "pooled_regression",
    "population_anchor",
    "population_dare",
    "population_whitened_anchor",
    "symmetric_root",
    "whitening_error_bound",
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
