"""Theorem 2, held against explicit domains, searches, and the zero predictor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skdare.theory._adversary import Adversary, averaged_guess, excess_risk
from skdare.theory._adversary_budget import Budget, budget_chart, budget_claim
from skdare.theory._adversary_proof import proof_claims
from skdare.theory._attack import attack
from skdare.theory._claim import Chapter, Chart, Claim, Curve
from skdare.theory._closed_form import mean_null_projection
from skdare.theory._measurement import ROUNDING, near
from skdare.theory._model import LatentDomain, LatentModel

# β with ‖Πβ‖ = 0.6 and ‖(I - Π)β‖ = 0.8, so that the reader can check the numbers.
EXAMPLE = Adversary(np.array([0.6, 0.0, 0.8, 0.0]), np.diag([1.0, 1.0, 0.0, 0.0]))
# Of the supremum: how near a local search from a few starts comes, whose steps end before it.
SEARCH = 0.02


def adversary_chapter(seed: int = 0, quick: bool = False) -> Chapter:
    """What theorem 2 says of the worst new domain, and what can be found."""
    budget = Budget.example(seed)
    claims = [
        _supremum_claim(seed, 5 if quick else 30),
        _large_interaction_claim(seed),
        _logistic_claim(seed),
        _tie_claim(seed, 200 if quick else 2_000),
        _zero_claim(seed, 100 if quick else 1_000),
        *proof_claims(seed, 20 if quick else 200),
        budget_claim(budget),
    ]
    pictures = [
        _supremum_chart(seed, 5 if quick else 9),
        _factor_chart(),
        budget_chart(budget, seed, 5 if quick else 9),
    ]
    return Chapter("Theorem 2: the worst new domain", claims, pictures)


def found_risk(adversary: Adversary, W: np.ndarray, seed: int) -> float:
    """The excess risk of DARE's solution at the worst domain that the search finds."""
    domain = attack(adversary, W, random_state=seed)
    return excess_risk(adversary.solution, adversary.truth, W, domain)


# -- The supremum ---------------------------------------------------------------------------------


def _supremum_claim(seed: int, n_models: int) -> Claim:
    explicit, found, slack = [], [], 1e-4
    for k in range(n_models):
        model = LatentModel.draw(5, 2, random_state=seed + k)
        W, projection = averaged_guess(model), mean_null_projection(model.means)
        for interaction in (0.0, 0.3, 1.0):
            adversary = Adversary(model.beta, projection, interaction, rho=1.0)
            domain = adversary.worst_domain(W, slack=slack)
            risk = excess_risk(adversary.solution, model.beta, W, domain)
            explicit.append(risk / adversary.printed_supremum())
            found.append(found_risk(adversary, W, seed) / adversary.printed_supremum())
    misses = np.abs(1.0 - np.array(found))
    return Claim(
        "theorem 2, supremum, regression, B ≤ 1",
        "The supremum is (1 + ρ²) (‖β‖² + 2 B ‖Πβ‖ ‖(I - Π)β‖).",
        "It is, with assumption 3 in the form of its lemma, which leaves the new mean out (see "
        f"there): in {len(found)} problems explicit domains reach {min(explicit):.4f} of it or "
        f"more, and a search over symmetric A ends within {misses.max():.1e} of it. With "
        "assumption 3 as it stands it is for B = 0 or ρ = 0, and less otherwise.",
        # The risk is smooth in w, and falls by a few times the slack.
        1.0 - 10.0 * slack < min(explicit)
        and max(explicit) <= 1.0
        and misses.max() < SEARCH
        and max(found) < 1.0 + ROUNDING,
        "holds in part",
    )


def _large_interaction_claim(seed: int) -> Claim:
    adversary = replace(EXAMPLE, interaction=2.0)
    printed, exact = adversary.printed_supremum(), adversary.supremum()
    found = found_risk(adversary, np.eye(4), seed)
    return Claim(
        "theorem 2, supremum, B > 1",
        "The same value for every B ≥ 0.",
        "Assumption 3 bounds what crosses over by ‖Πβ‖ already, so that B counts up to one. "
        "With ‖Πβ‖ = 0.6, ‖(I - Π)β‖ = 0.8 and B = 2 the paper has "
        f"{printed:.3g}; the supremum is {exact:.3g}, and a search finds {found:.3g}.",
        _between(found, exact, printed),
        "does not hold as printed",
    )


def _logistic_claim(seed: int) -> Claim:
    adversary = replace(EXAMPLE, interaction=0.5, scale=0.5)
    none = replace(adversary, interaction=0.0)
    printed, exact = adversary.printed_supremum(), adversary.supremum()
    found, tie = (found_risk(a, np.eye(4), seed) for a in (adversary, none))
    return Claim(
        "theorem 2, supremum, classification",
        "The same value for logistic regression, whose solution is αΠβ.",
        "So it is for B = 0. For B > 0 and α < 1 the two terms that the proof bounds apart are not "
        f"largest together: with α = 0.5 and B = 0.5 the paper has "
        f"{printed:.3g}; the supremum is {exact:.3g}, and a search finds {found:.3g}. With B = 0 "
        f"it finds {tie:.3g}, and the paper has {none.printed_supremum():.3g}.",
        _between(found, exact, printed) and near(tie, none.printed_supremum(), SEARCH),
        "holds in part",
    )


def _between(found: float, exact: float, printed: float) -> bool:
    """Whether a search finds the supremum, no more, and that is less than what is printed."""
    return (
        found < (1.0 + ROUNDING) * exact
        and near(found, exact, SEARCH)
        and (1.0 + SEARCH) * found < printed
    )


def _supremum_chart(seed: int, n_dots: int) -> Chart:
    lines, dots = np.linspace(0.0, 2.0, 81), np.linspace(0.0, 2.0, n_dots)
    sets = [replace(EXAMPLE, interaction=float(B)) for B in lines]
    curves = {"as printed": Curve(lines, np.array([s.printed_supremum() for s in sets]))}
    for scale, name in [(1.0, "DARE, α = 1"), (0.5, "DARE, α = 0.5")]:
        exact = [replace(s, scale=scale).supremum() for s in sets]
        chosen = [replace(EXAMPLE, interaction=float(B), scale=scale) for B in dots]
        found = [found_risk(adversary, np.eye(4), seed) for adversary in chosen]
        curves[name] = Curve(lines, np.array(exact))
        curves[f"{name}, found"] = Curve(dots, np.array(found), dots=True)
    curves["zero"] = Curve(lines, np.array([s.supremum(np.zeros(4)) for s in sets]))
    return Chart(
        "adversary_supremum",
        "The worst case stops growing at B = 1, and zero is below it",
        "interaction B",
        "worst excess risk",
        "‖Πβ‖ = 0.6, ‖(I - Π)β‖ = 0.8, ρ = 0. Points are the worst domains a search finds. The "
        "zero predictor costs ‖β‖² whatever the domain.",
        curves,
        marks={"B = 1": 1.0},
    )


# -- Minimaxity -----------------------------------------------------------------------------------


def _tie_claim(seed: int, n_domains: int) -> Claim:
    rng, shares = np.random.default_rng(seed), []
    for rho in (0.0, 1.0):
        adversary, below = replace(EXAMPLE, rho=rho), 0
        for _ in range(n_domains):
            domain = _some_domain(adversary, rng)
            risks = [
                excess_risk(beta, adversary.truth, np.eye(4), domain)
                for beta in (adversary.solution, np.zeros(4))
            ]
            below += risks[0] < risks[1]
        shares.append(below / n_domains)
    # For the zero mean; with another each is multiplied by 1 + ρ².
    ties = [EXAMPLE.supremum(a * EXAMPLE.kept) for a in np.linspace(0.0, 1.0, 11)]
    beyond = [EXAMPLE.supremum(a * EXAMPLE.kept) for a in (-1.0, -0.1, 1.1, 2.0)]
    return Claim(
        "theorem 2, minimaxity, B = 0",
        "No predictor has a smaller worst case than DARE.",
        "So it is, and aΠβ has the same worst case for every a in [0, 1], zero included. Among "
        f"{n_domains:,} random domains of the set DARE beats zero in {100 * shares[0]:.3g}% "
        f"where the mean is zero, and in {100 * shares[1]:.3g}% where it is random of norm one.",
        near(np.array(ties), EXAMPLE.supremum(), ROUNDING)
        and min(beyond) > EXAMPLE.supremum()
        and shares[0] == 1.0,
    )


def _some_domain(adversary: Adversary, rng: np.random.Generator) -> LatentDomain:
    """A random domain of the set without interaction, for a guess of I."""
    direction = adversary.projection @ rng.standard_normal(4)
    error = rng.uniform() * np.linalg.norm(adversary.kept) * direction / np.linalg.norm(direction)
    b = rng.standard_normal(4)
    return adversary.domain(np.eye(4), error, adversary.rho * b / np.linalg.norm(b))


def _zero_claim(seed: int, n_problems: int) -> Claim:
    rng, below = np.random.default_rng(seed), 0
    for _ in range(n_problems):
        projection = mean_null_projection(rng.standard_normal((5, 2)))
        truth, (B, rho) = rng.standard_normal(5), rng.exponential(size=2)
        adversary = Adversary(truth, projection, B, rho, scale=1.0 - rng.uniform())
        below += adversary.supremum(np.zeros(5)) < adversary.supremum()
    adversary = replace(EXAMPLE, interaction=0.5)
    zero, dare = adversary.supremum(np.zeros(4)), adversary.supremum()
    found = found_risk(adversary, np.eye(4), seed)
    return Claim(
        "theorem 2, minimaxity, B > 0",
        "No predictor has a smaller worst case than DARE.",
        "Zero has one: (1 + ρ²) ‖β‖², whatever the domain. With B = 0.5 in the example it is "
        f"{zero:.3g} against {dare:.3g}, and a search finds a domain that costs DARE {found:.3g}. "
        f"In {n_problems:,} random problems zero was below DARE in "
        f"{100 * below / n_problems:.3g}%. Zero's worst case needs neither assumption, so it does "
        "not matter how they are read. The proof compares the first of three terms only.",
        zero < found < (1.0 + ROUNDING) * dare and below == n_problems,
        "does not hold as printed",
    )


def _factor_chart() -> Chart:
    factors, curves = np.linspace(-0.5, 1.5, 201), {}
    for B in (0.0, 0.25, 1.0):
        adversary = replace(EXAMPLE, interaction=B)
        worst = [adversary.supremum(a * adversary.kept) for a in factors]
        curves[f"B = {B:g}"] = Curve(factors, np.array(worst))
    return Chart(
        "adversary_factor",
        "With interaction, zero alone is minimax",
        "a",
        "worst excess risk of aΠβ",
        "‖Πβ‖ = 0.6, ‖(I - Π)β‖ = 0.8, ρ = 0. Without interaction all of [0, 1] is equally good; "
        "with any, zero is best. Predictors in other directions have no bound.",
        curves,
        marks={"DARE": 1.0},
    )
