"""The paper's model of distribution shift, its theorems and their quantities, as code."""

from collections.abc import Callable

from skdare.paper.theory.adversary import Adversary, guess_error
from skdare.paper.theory.adversary_claims import adversary_chapter
from skdare.paper.theory.adversary_search import attack
from skdare.paper.theory.anchors import (
    anchors_chapter,
    population_anchor,
    population_dare,
    population_whitened_anchor,
)
from skdare.paper.theory.claims import Chapter, Claim
from skdare.paper.theory.closed_form import Attenuation, ClosedForm, closed_form, logistic_scale
from skdare.paper.theory.closed_form_claims import closed_form_chapter
from skdare.paper.theory.environments import environment_bound, environment_risk
from skdare.paper.theory.environments_claims import environments_chapter
from skdare.paper.theory.error_budget import worst_case
from skdare.paper.theory.just_in_time import (
    JustInTime,
    just_in_time_bound,
    just_in_time_expected,
    just_in_time_risk,
)
from skdare.paper.theory.just_in_time_claims import just_in_time_chapter
from skdare.paper.theory.matrices import eigen_root, mean_null_projection, symmetric_root
from skdare.paper.theory.model import LAWS, LatentDomain, LatentModel
from skdare.paper.theory.population import averaged_guess, excess_risk, pooled_regression
from skdare.paper.theory.whitening_error import condition_m, whitening_error_bound

__all__ = [
    "CHAPTERS",
    "LAWS",
    "Adversary",
    "Attenuation",
    "Chapter",
    "Claim",
    "ClosedForm",
    "JustInTime",
    "LatentDomain",
    "LatentModel",
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

# Each is called with a seed, and whether to be quick.
CHAPTERS: dict[str, Callable[[int, bool], Chapter]] = {
    "closed forms": closed_form_chapter,
    "worst cases": adversary_chapter,
    "number of domains": environments_chapter,
    "just-in-time adaptation": just_in_time_chapter,
    "anchor regression": anchors_chapter,
}
