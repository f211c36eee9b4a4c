"""Theorem 1 in samples: the library's heads against the closed form as rows are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from skdare.heads import DAREClassifier, DARERegressor
from skdare.theory._claim import Chart, Claim, Curve
from skdare.theory._closed_form import closed_form
from skdare.theory._laws import LAWS
from skdare.theory._measurement import RATE, log_slope, near
from skdare.theory._model import LatentModel

# A distance from weights of norm one that most would call reached: a risk of 1 % of the whole.
SMALL = 0.1
# Of a scale: five standard errors of its mean over the fewest rows and repeats that are used.
SCALE = 0.05
# A penalty under which the score at every sampled mean vanishes, as the constraint is written.
_RIGID = 1e8


@dataclass(frozen=True)
class Effort:
    """How much to sample.

    Parameters
    ----------
    sizes : tuple of int
        Rows in each domain.
    repeats : int
        Samples of each size.
    """

    sizes: tuple[int, ...]
    repeats: int


def fitted_coefficients(
    model: LatentModel,
    n: int,
    seed: int,
    *,
    intercept: bool = True,
    mean_penalty: float | str = "exact",
) -> np.ndarray:
    """Canonical weights (d,) of the library's head on n rows a domain, in the targets' units."""
    family = DAREClassifier if model.task == "classification" else DARERegressor
    head = family(
        mean_penalty=mean_penalty,
        shrinkage=0.0,
        centered=True,
        l2=0.0,
        adaptation=None,
        fit_intercept=intercept,
    )
    data = model.sample(n, random_state=seed)
    head.fit(data.X, data.y, domains=data.domains)
    return np.linalg.solve(head.adjustment_.dense(), np.atleast_2d(head.coef_)[0])


def head_errors(
    model: LatentModel,
    effort: Effort,
    seed: int,
    *,
    penalty_for: Callable[[int], float | str] = lambda n: "exact",
) -> Curve:
    """Root mean squared distance of heads from the closed form, for every number of rows n."""
    goal, errors = closed_form(model, intercept=True).coef, []
    for n in effort.sizes:
        penalty = penalty_for(n)
        squares = [
            np.sum((fitted_coefficients(model, n, seed + k, mean_penalty=penalty) - goal) ** 2)
            for k in range(effort.repeats)
        ]
        errors.append(np.sqrt(np.mean(squares)))
    return Curve(np.array(effort.sizes), np.array(errors), dots=True)


def binary_model(seed: int, shift: float = 1.0) -> LatentModel:
    """Three domains in six dimensions, Gaussian latents, two classes, and ‖β‖ = 2."""
    model = LatentModel.draw(6, 3, shift=shift, task="classification", random_state=seed)
    return replace(model, beta=2.0 * model.beta)


# -- As many directions of means as domains -------------------------------------------------------


def sample_errors(seed: int, effort: Effort) -> Mapping[str, Curve]:
    """Errors against rows: regression for every law, classification for the Gaussian one."""
    models = {law: LatentModel.draw(6, 3, law=law, random_state=seed) for law in LAWS}
    models["classification"] = binary_model(seed)
    return {name: head_errors(model, effort, seed) for name, model in models.items()}


def regression_claim(errors: Mapping[str, Curve]) -> Claim:
    """Of theorem 1, for every law."""
    curves = {law: errors[law] for law in LAWS}
    slopes = [log_slope(curve.x, curve.y) for curve in curves.values()]
    last = max(curve.y[-1] for curve in curves.values())
    n = int(curves["gaussian"].x[-1])
    return Claim(
        "theorem 1, regression",
        "The solution is the truth projected onto what no latent mean touches, for any law.",
        f"Heads on three domains in six dimensions tend to it for all {len(curves)} laws: the "
        f"error falls as n to the power {min(slopes):.3g} to {max(slopes):.3g}, and is at most "
        f"{last:.3g} with {n:,} rows a domain. The means spanned as many directions as there were "
        "domains; the claim on full access has the other case.",
        np.abs(np.add(slopes, 0.5)).max() < RATE and last < SMALL,
    )


def classification_claim(seed: int, effort: Effort, errors: Mapping[str, Curve]) -> Claim:
    """Of theorem 1, with and without an intercept."""
    model, n, parts, pairs = binary_model(seed), effort.sizes[-1], [], []
    for intercept in (False, True):
        expected = closed_form(model, intercept=intercept)
        kept = expected.projection @ model.beta
        found = np.mean(
            [
                fitted_coefficients(model, n, seed + k, intercept=intercept) @ kept
                for k in range(effort.repeats)
            ]
        )
        how = "with an intercept" if intercept else "without"
        pairs.append((float(found / (kept @ kept)), expected.scale))
        parts.append(f"{pairs[-1][0]:.3g} for {pairs[-1][1]:.3g} {how}")
    fitted, scales = np.array(pairs).T
    power = log_slope(errors["classification"].x, errors["classification"].y)
    return Claim(
        "theorem 1, classification",
        "With Gaussian latents the solution is that projection times a number in (0, 1].",
        "Stein's identity gives the number as the root of one equation. Heads with "
        f"{n:,} rows a domain found {' and '.join(parts)}; their error falls as n to the power "
        f"{power:.3g}.",
        near(fitted, scales, SCALE)
        and 0.0 < scales.min() <= scales.max() <= 1.0
        and abs(power + 0.5) < RATE,
    )


def samples_chart(errors: Mapping[str, Curve]) -> Chart:
    """Errors against rows."""
    x = errors["gaussian"].x.astype(float)
    line = Curve(x, errors["gaussian"].y[0] * np.sqrt(x[0] / x))
    return Chart(
        "closed_form_samples",
        "Heads tend to the closed form",
        "rows in each domain",
        "distance from the closed form",
        "Regression for six laws of the latents, and classification for the Gaussian one: the "
        "distance falls with the root of the number of rows (line).",
        {"n to the power -1/2": line, **errors},
        logarithmic=("x", "y"),
    )


# -- Fewer directions of means than domains -------------------------------------------------------


def rank_errors(seed: int, effort: Effort) -> Mapping[str, Curve]:
    """Errors against rows of three domains whose means span two directions."""
    model = LatentModel.draw(6, 3, mean_rank=2, random_state=seed)
    penalties: dict[str, Callable[[int], float | str]] = {
        "every sampled mean": lambda n: _RIGID,
        "means above the noise": lambda n: "exact",
        "penalty √n": lambda n: float(np.sqrt(n)),
    }
    return {
        name: head_errors(model, effort, seed, penalty_for=penalty_for)
        for name, penalty_for in penalties.items()
    }


def rank_claim(errors: Mapping[str, Curve]) -> Claim:
    """That sampling is a detail."""
    every, above, penalty = errors.values()
    powers = [log_slope(curve.x, curve.y) for curve in (above, penalty)]
    return Claim(
        "section 4, full access to the training domains",
        "Standard concentration inequalities could easily be applied.",
        "Not to the constraint as it is written, where the means of E domains span fewer than E "
        "directions: sampled means always span E, and the constraint takes random directions away. "
        f"With three domains and two directions the error is {every.y[0]:.3g} at "
        f"{every.x[0]:,} rows a domain and {every.y[-1]:.3g} at {every.x[-1]:,}. If only what "
        "stands out from the noise of sampling is constrained, as the library does, it is "
        f"{above.y[0]:.3g} and {above.y[-1]:.3g}, a power of {powers[0]:.3g}; a penalty of √n has "
        f"{penalty.y[0]:.3g} and {penalty.y[-1]:.3g}, a power of {powers[1]:.3g}.",
        log_slope(every.x, every.y) > -RATE and np.abs(np.add(powers, 0.5)).max() < RATE,
        "holds in part",
    )


def rank_chart(errors: Mapping[str, Curve]) -> Chart:
    """Errors against rows."""
    return Chart(
        "closed_form_rank",
        "The exact constraint is not continuous in the means",
        "rows in each domain",
        "distance from the closed form",
        "Three domains whose true means span two directions: sampled means span three, and a "
        "constraint on all of them gives up a random one. One on what stands out from the noise "
        "does not, nor does a penalty that grows as √n.",
        errors,
        logarithmic=("x", "y"),
    )
