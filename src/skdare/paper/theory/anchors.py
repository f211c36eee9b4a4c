"""Appendix A: anchor regression with the domain as anchor, and when it is DARE.

Notation: A (d, d) and b (d,) of a domain, B (d, E) latent means, W̄ (d, d) the averaged guess,
γ and λ penalties, ρ the length of a new domain's latent mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdare import AnchorRegressor, DARERegressor
from skdare.data.domain_data import DomainData
from skdare.paper.theory.charts import LOG_LOG, Chart, Curve
from skdare.paper.theory.claims import ROUNDING, VISIBLE, Chapter, Measurement, listed, statement
from skdare.paper.theory.matrices import random_direction, random_symmetric
from skdare.paper.theory.model import LatentDomain, LatentModel, stack_domains
from skdare.paper.theory.population import averaged_guess, excess_risk

# Of a prediction, where a penalty of 10⁸ stands for an infinite one: what is left is its inverse.
LIMIT = 1e-6
_PENALTIES = (0.0, 0.1, 1.0, 10.0, 1e4)
# As the appendix prints the objectives: no ridge, no intercept, no shrinkage.
_PRINTED: dict[str, Any] = {"l2": 0.0, "fit_intercept": False}
_WHITENED = {**_PRINTED, "shrinkage": 0.0, "centered": True}

# New domains with a mean of length ρ, inside the span of the training means or outside of it:
# dimensions inside and outside, training and new domains in each problem.
INSIDE = 4
OUTSIDE = 8
DOMAINS = 6
NEW = 20
RHO = 3.0
# ± log singular values of the training domains inside the span, four times as much, and those of
# every domain outside of it.
SPREAD = 0.5
WIDE = 4 * SPREAD
QUIET = 0.2


def anchors_chapter(seed: int = 0, quick: bool = False) -> Chapter:
    """What appendix A says of anchor regression, and what the library's heads give."""
    rng = np.random.default_rng(seed)
    mild, wide = (NewMeans.draw(5 if quick else 40, spread, rng) for spread in (SPREAD, WIDE))
    claims = [
        _whitened_claim(rng),
        _one_covariance_claim(rng),
        _zero_means_claim(rng),
        _one_hot_claim(rng),
        _limits_claim(rng),
        _robustness_claim(mild, wide),
    ]
    pictures = [
        _robustness_chart(mild, SPREAD, "mild", "New domains spread like the training domains"),
        _robustness_chart(wide, WIDE, "wide", "New domains spread four times as far"),
    ]
    return Chapter("Appendix A: anchor regression", claims, pictures)


# -- Solutions on whole distributions: weights (d,) on x, for an unseen domain --------------------


def population_anchor(model: LatentModel, gamma: float) -> np.ndarray:
    """Weights on x that minimise squared error within domains plus γ times that at the means.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import LatentModel, population_anchor
    >>> model = LatentModel.draw(d=3, n_domains=1, spread=0.0, random_state=0)
    >>> bool(np.allclose(population_anchor(model, 10.0), model.beta))
    True
    """
    d = len(model.beta)
    H = np.zeros((d, d))
    right = np.zeros(d)
    for domain in model.domains:
        A = domain.A
        mean = domain.mean
        H = H + A @ A.T + gamma * np.outer(mean, mean)
        right = right + A @ model.beta + gamma * mean * (domain.b @ model.beta)
    return np.linalg.solve(H, right)


def population_whitened_anchor(model: LatentModel, gamma: float) -> np.ndarray:
    """Weights of anchor regression after each domain is aligned; on x by the averaged guess.

    The objective is ``‖β - β*‖² + γ mean_e ((β - β*)ᵀ b_e)²``: γ changes nothing, because the
    latent means move y by the same β* that the residuals do.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import LatentModel, population_whitened_anchor
    >>> model = LatentModel.draw(d=3, n_domains=1, spread=0.0, random_state=0)
    >>> bool(np.allclose(population_whitened_anchor(model, 10.0), model.beta))
    True
    """
    return _aligned(model, gamma, model.means.T @ model.beta)


def population_dare(model: LatentModel, mean_penalty: float) -> np.ndarray:
    """Domain-adjusted regression in Lagrangian form; on x by the averaged guess.

    ``‖β - β*‖² + λ mean_e (βᵀ b_e)²``: predictions at the means are drawn to zero, not to their
    targets.

    Examples
    --------
    >>> import numpy as np
    >>> from skdare.paper.theory import LatentModel, population_dare
    >>> model = LatentModel.draw(d=3, n_domains=1, spread=0.0, random_state=0)
    >>> bool(np.allclose(population_dare(model, 0.0), model.beta))
    True
    """
    return _aligned(model, mean_penalty, np.zeros(len(model.domains)))


def _aligned(model: LatentModel, penalty: float, targets: np.ndarray) -> np.ndarray:
    """W̄ times the minimiser of ``‖β - β*‖² + penalty · mean_e (βᵀ b_e - target_e)²``."""
    B = np.sqrt(penalty / len(targets)) * model.means
    right = model.beta + np.sqrt(penalty / len(targets)) * B @ targets
    return averaged_guess(model) @ np.linalg.solve(np.eye(len(B)) + B @ B.T, right)


_SOLUTIONS = {
    "anchor": population_anchor,
    "whitened anchor": population_whitened_anchor,
    "DARE": population_dare,
}


@statement("appendix A, assumption (ii)", "holds in part")
def _zero_means_claim(rng: np.random.Generator) -> Measurement:
    """Target means are zero in every domain."""
    model = LatentModel.draw(8, 4, mean_rank=3, spread=0.0, random_state=rng)
    # β* with no part along the means: the only way to target means of zero.
    span = np.linalg.svd(model.means)[0][:, :3]
    beta = model.beta - span @ (span.T @ model.beta)
    moves = _largest_move(model)
    still = _largest_move(LatentModel(beta, model.domains))
    return Measurement(
        "In the paper's model the target mean is β*ᵀb_e, so that this says Π̂β* = β*: the means "
        "carry nothing, and the penalty acts on nothing. Between γ = λ = 0 and 10⁴ the population "
        f"solutions move by at most {still:.1e}; for the same domains and a β* with target means, "
        f"DARE's moves by {moves:.3g}. The equivalence holds where neither penalty matters, unless "
        "targets are centred by domain, which a new domain does not allow.",
        still < ROUNDING and moves > VISIBLE,
    )


def _largest_move(model: LatentModel) -> float:
    """How far any of the three population solutions moves with its penalty."""
    return max(
        float(np.abs(solve(model, penalty) - solve(model, 0.0)).max())
        for solve in _SOLUTIONS.values()
        for penalty in _PENALTIES
    )


# -- Heads on samples -----------------------------------------------------------------------------


def sample_domains(
    rng: np.random.Generator,
    *,
    sizes: tuple[int, ...] = (60, 60, 60, 60),
    one_covariance: bool = False,
    zero_target_means: bool = True,
) -> DomainData:
    """Rows of domains in five dimensions, with the appendix's assumptions exact on the sample."""
    model = LatentModel.draw(5, len(sizes), noise=0.5, random_state=rng)
    X, y = [], []
    for domain, n in zip(model.domains, sizes, strict=True):
        Z = domain.latents(n, rng)
        targets = model.targets(Z, rng)
        rows = Z @ domain.A.T
        if one_covariance:
            mean = rows.mean(axis=0)
            centred = rows - mean
            L = np.linalg.cholesky(centred.T @ centred / n)
            # The covariance of every domain becomes that of the first one's population.
            rows = np.linalg.solve(L, centred.T).T @ model.domains[0].A.T + mean
        X.append(rows)
        y.append(targets - targets.mean() if zero_target_means else targets)
    return stack_domains(X, y)


def _coef(head: AnchorRegressor | DARERegressor, data: DomainData) -> np.ndarray:
    return head.fit(data.X, data.y, domains=data.domains).coef_


def _plain_head(gamma: float) -> AnchorRegressor:
    return AnchorRegressor(gamma=gamma, **_PRINTED)


def _whitened_head(gamma: float) -> AnchorRegressor:
    return AnchorRegressor(gamma=gamma, adjust=True, **_WHITENED)


def _dare_head(mean_penalty: float) -> DARERegressor:
    return DARERegressor(mean_penalty=mean_penalty, **_WHITENED)


def _difference(data: DomainData, anchor: Callable[[float], AnchorRegressor]) -> float:
    """Largest difference of coefficients between an anchor head and DARE with λ = γ."""
    return max(
        float(np.abs(_coef(anchor(penalty), data) - _coef(_dare_head(penalty), data)).max())
        for penalty in _PENALTIES
    )


@statement("appendix A, last display")
def _whitened_claim(rng: np.random.Generator) -> Measurement:
    """Anchor regression after whitening keeps the target means, and is else DARE."""
    same = _difference(sample_domains(rng), _whitened_head)
    other = _difference(sample_domains(rng, zero_target_means=False), _whitened_head)
    return Measurement(
        f"With target means of zero, AnchorRegressor(adjust=True) and DARERegressor differ by at "
        f"most {same:.1e} in a coefficient for γ = λ = 0, 0.1, 1, 10, 10⁴: no factor lies between "
        f"the two penalties. With target means as they are, by up to {other:.3g}.",
        same < ROUNDING and other > VISIBLE,
    )


@statement("appendix A")
def _one_covariance_claim(rng: np.random.Generator) -> Measurement:
    """With one covariance and target means of zero, anchor regression is DARE's Lagrangian."""
    same, varied, means = (
        _difference(
            sample_domains(rng, one_covariance=one_covariance, zero_target_means=zero_target_means),
            _plain_head,
        )
        for one_covariance, zero_target_means in ((True, True), (False, True), (True, False))
    )
    return Measurement(
        f"AnchorRegressor and DARERegressor differ by at most {same:.1e} in a coefficient for "
        "γ = λ = 0, 0.1, 1, 10, 10⁴, on rows for which both hold exactly. Without the one "
        f"covariance by up to {varied:.3g}, without the zero means by up to {means:.3g}: both are "
        "needed.",
        same < ROUNDING and min(varied, means) > VISIBLE,
    )


def textbook_anchor(data: DomainData, gamma: float) -> np.ndarray:
    """Least squares on (I - P + √γ P) X, with P the projection onto one-hot domains."""
    Z = (data.domains[:, None] == np.unique(data.domains)).astype(float)
    rows = np.column_stack([data.X, data.y])
    across = Z @ np.linalg.lstsq(Z, rows, rcond=None)[0]
    T = rows + (np.sqrt(gamma) - 1.0) * across
    return np.linalg.lstsq(T[:, :-1], T[:, -1], rcond=None)[0]


@statement("appendix A", "holds in part")
def _one_hot_claim(rng: np.random.Generator) -> Measurement:
    """With one-hot domains as anchors, anchor regression averages over domains."""
    differences = []
    for sizes in ((60, 60, 60, 60), (15, 30, 60, 240)):
        data = sample_domains(rng, zero_target_means=False, sizes=sizes)
        gaps = [_coef(_plain_head(g), data) - textbook_anchor(data, g) for g in (0.1, 1.0, 10.0)]
        differences.append(float(np.abs(gaps).max()))
    equal, unequal = differences
    return Measurement(
        "It averages over rows; the two agree when domains are of one size. Against least squares "
        f"on (I - P + √γ P)X the appendix's objective differs by {equal:.1e} in a coefficient "
        f"for four domains of 60 rows, and by up to {unequal:.3g} for 15, 30, 60 and 240.",
        equal < ROUNDING and unequal > VISIBLE,
    )


@statement("appendix A")
def _limits_claim(rng: np.random.Generator) -> Measurement:
    """Anchor regression regresses the mean prediction onto the target mean, DARE onto zero."""
    data = sample_domains(rng, sizes=(60, 60, 60), zero_target_means=False)
    pooled = np.linalg.lstsq(data.X, data.y, rcond=None)[0]
    one = float(np.abs(_coef(_plain_head(1.0), data) - pooled).max())
    rows = [data.domains == e for e in range(3)]
    means = np.stack([data.X[r].mean(axis=0) for r in rows])
    targets = [data.y[r].mean() for r in rows]
    anchor = np.abs(means @ _coef(_plain_head(1e8), data) - targets).max()
    head = _dare_head(1e8).fit(data.X, data.y, domains=data.domains)
    dare = max(
        abs(head.domain_fit_.unseen.B[:, 0] @ head.adjustments_[e].back(mean[:, None])[:, 0])
        for e, mean in enumerate(means)
    )
    return Measurement(
        f"γ = 1 is least squares on all rows (largest difference {one:.1e}). At γ = λ = 10⁸ "
        f"anchor regression predicts each domain's target mean to {anchor:.1e}, and DARE predicts "
        f"zero at each domain mean to {dare:.1e}; the target means are up to "
        f"{np.abs(targets).max():.3g}.",
        one < ROUNDING and max(anchor, dare) < LIMIT and np.abs(targets).max() > VISIBLE,
    )


# -- New domains whose mean is far away -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NewMeans:
    """Training domains with means in one block of features, and new domains for each of them.

    A is symmetric and block-diagonal: the adversary of theorem 2 without interaction. Half of
    ‖β*‖² lies in each block. New domains have a mean of length ρ in the block of the training
    means (``inside``) or in the other (``outside``).
    """

    models: Sequence[LatentModel]
    inside: Sequence[Sequence[LatentDomain]]
    outside: Sequence[Sequence[LatentDomain]]

    @classmethod
    def draw(cls, problems: int, spread: float, rng: np.random.Generator) -> NewMeans:
        """Log singular values of new domains are uniform in ±spread inside the span."""
        models, inside, outside = [], [], []
        for _ in range(problems):
            training = []
            for _ in range(DOMAINS):
                b = np.append(rng.standard_normal(INSIDE), np.zeros(OUTSIDE))
                training.append(LatentDomain(_block_diagonal(SPREAD, rng), b))
            beta = [random_direction(INSIDE, rng), random_direction(OUTSIDE, rng)]
            models.append(LatentModel(np.concatenate(beta) / np.sqrt(2.0), training))
            new = [_block_diagonal(spread, rng) for _ in range(NEW)]
            near = [np.append(random_direction(INSIDE, rng), np.zeros(OUTSIDE)) for _ in new]
            far = [np.append(np.zeros(INSIDE), random_direction(OUTSIDE, rng)) for _ in new]
            inside.append([LatentDomain(A, RHO * b) for A, b in zip(new, near, strict=True)])
            outside.append([LatentDomain(A, RHO * b) for A, b in zip(new, far, strict=True)])
        return cls(models, inside, outside)

    def risk(
        self, solve: Callable[[LatentModel, float], np.ndarray], penalty: float, *, inside: bool
    ) -> float:
        """Mean excess risk on the new domains of the weights ``solve(model, penalty)``."""
        risks = []
        for model, domains in zip(
            self.models, self.inside if inside else self.outside, strict=True
        ):
            weights = solve(model, penalty)
            plain = np.eye(len(weights))
            risks += [excess_risk(weights, model.beta, plain, new) for new in domains]
        return sum(risks) / len(risks)


def _block_diagonal(spread: float, rng: np.random.Generator) -> np.ndarray:
    A = np.zeros((INSIDE + OUTSIDE, INSIDE + OUTSIDE))
    A[:INSIDE, :INSIDE] = random_symmetric(INSIDE, spread, rng)
    A[INSIDE:, INSIDE:] = random_symmetric(OUTSIDE, QUIET, rng)
    return A


@statement("appendix A", "holds in part")
def _robustness_claim(mild: NewMeans, wide: NewMeans) -> Measurement:
    """Anchor regression is robust to additive shifts along the anchors, in its own model."""
    risks = {
        (name, head): [new.risk(solve, penalty, inside=True) for penalty in (0.0, 1.0, 1e4)]
        for name, new in (("mild", mild), ("wide", wide))
        for head, solve in _SOLUTIONS.items()
    }
    flat = max(float(np.ptp(risks[name, "whitened anchor"])) for name in ("mild", "wide"))
    cases = {case: listed(risk) for case, risk in risks.items()}
    cost = risks["mild", "DARE"]
    gain = risks["wide", "DARE"]
    return Measurement(
        "Not in this one: here means move y by the same β* as residuals do, so that after "
        f"whitening γ changes nothing (risk by {flat:.1e}). Mean risk with a new mean of length "
        f"{RHO:g} in the span of the training means, at penalties 0, 1, 10⁴: where new domains "
        f"spread like the training domains, anchor {cases['mild', 'anchor']}, whitened "
        f"{cases['mild', 'whitened anchor']}, DARE {cases['mild', 'DARE']}; where they spread four "
        f"times as far, {cases['wide', 'anchor']}; {cases['wide', 'whitened anchor']}; "
        f"{cases['wide', 'DARE']}. DARE's penalty insures against adjustments that fail, and costs "
        "where they do not.",
        flat < ROUNDING and cost[0] < cost[1] < cost[2] and gain[0] > gain[1] > gain[2],
    )


def _robustness_chart(new: NewMeans, spread: float, name: str, title: str) -> Chart:
    at = np.geomspace(1e-2, 1e4, 13)
    curves = {}
    for head, solve in _SOLUTIONS.items():
        for inside, side in ((True, "inside"), (False, "outside")):
            risk = [new.risk(solve, float(penalty), inside=inside) for penalty in at]
            curves[f"{head}, {side}"] = Curve(at, np.array(risk))
    return Chart(
        f"anchors-{name}",
        title,
        "penalty γ or λ",
        "mean excess risk",
        f"Whole distributions; new latent means of length {RHO:g} inside or outside the span of "
        f"the training means. Log singular values inside the span: ±{SPREAD} in training, "
        f"±{spread} in new domains; outside ±{QUIET} everywhere.",
        curves,
        LOG_LOG,
    )
