"""The demonstration of the paper's model, and its verdicts."""

import numpy as np
import pytest

from skdare.datasets._synthetic import LatentLaw
from skdare.demo.model import paper_model, worst_domain
from skdare.demo.studies import STUDIES, Outcome
from skdare.theory import LatentDomain, excess_risk


def test_no_domain_within_reach_costs_more_than_the_adversarys():
    rng = np.random.default_rng(0)
    law = LatentLaw.draw(5, 2, rng)
    c = rng.normal(size=5)
    worst = excess_risk(c, law.beta, np.eye(5), worst_domain(law, c, 1.0, 0.7))
    for _ in range(300):
        reach = law.reach(1.0)
        b = rng.normal(size=5)
        b *= 0.7 / np.linalg.norm(b)
        domain = LatentDomain(law.transformation(rng.uniform(-reach, reach)), b)
        assert excess_risk(c, law.beta, np.eye(5), domain) <= worst


def test_dare_insures_the_tail_and_pays_on_domains_like_training():
    risks = paper_model()
    erm, dare, adapted = (risks[name].fields() for name in ("erm", "dare", "adapted"))
    assert dare["alike_mean"] > erm["alike_mean"]
    assert dare["further_95"] < 0.5 * erm["further_95"]
    assert dare["adversary"] < 0.5 * erm["adversary"]
    assert adapted["further_mean"] < 0.5 * min(erm["further_mean"], dare["further_mean"])
    assert erm["adversary"] >= risks["erm"].further.max()


@pytest.mark.parametrize(
    ("as_it_is", "adapted", "advice"),
    [(0.70, 0.70, "stay"), (0.60, 0.71, "stay"), (0.75, 0.76, "use"), (0.75, 0.80, "adapt")],
)
def test_advice_follows_what_is_gained_over_erm(as_it_is, adapted, advice):
    scores = {"erm": {"a": 0.7}, "dare-cv": {"a": as_it_is}, "dare-cv-adapted": {"a": adapted}}
    assert Outcome(STUDIES[0], scores, accuracy=True).advice == advice
