"""What the rows of one domain are reduced to, once: moments, spectra, an adjustment."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any

import numpy as np

from skdare._array import (
    Array,
    Index,
    identity,
    is_foreign,
    like,
    namespace,
    on_accelerator,
    rounding_unit,
    smallest_spread,
    to_numpy,
    work_dtype,
)
from skdare._validation import check_choice, check_domain_weights, check_number
from skdare.adjustment import Adjustment, Spectrum, average, inverse_sqrt
from skdare.deflation import MIN_FEATURES, MIN_SHRINKAGE, deflated_inverse_root
from skdare.moments import (
    SHRINKAGE_RULES,
    Moments,
    pooled_second_moment,
    ridge_of,
    weighted_second_moment,
)
from skdare.newton_schulz import MIN_ITERATED, newton_schulz_inverse_root
from skdare.passes import Part, SpreadRows, visit_once
from skdare.row_spectrum import RowSpectrum
from skdare.row_sums import FeatureMoments

# The most that one pass brings back of moments from a worker.
_PASS_BYTES = 1 << 30
SHRINKAGE_TARGETS = ("scaled", "identity", "pooled")


class RowsAlike(ValueError):
    """Rows that do not differ, so that there is no second moment to adjust by."""


@dataclass(frozen=True)
class Whitening:
    """How a second moment becomes an adjustment.

    Parameters
    ----------
    adjust : bool
        False: one scalar for all domains, so that l2 means the same with and without whitening.
    centered : bool
        Covariance, or the raw second moment.
    shrinkage : float, "ledoit-wolf" or "oas"
    target : "scaled", "identity" or "pooled"
    """

    adjust: bool
    centered: bool
    shrinkage: float | str
    target: str

    @classmethod
    def of_head(cls, head: Any) -> Whitening:
        """As a head's options say."""
        return cls(head.adjust, head.centered, head.shrinkage, head.shrinkage_target)

    def can_invert(self, moments: Moments, X: Array | None = None) -> bool:
        """Whether the shrunk second moment has an inverse root that is more than rounding.

        The raw identity is something to invert even where rows do not differ. X are the rows, or
        such as they are.
        """
        centered = self.centered
        if self.target == "identity" and moments.shrinkage(self.shrinkage, centered=centered) > 0:
            return True
        if X is None:
            return moments.varies(centered=centered)
        eps, smallest = rounding_unit(X), smallest_spread(X)
        return moments.varies(centered=centered, eps=eps, smallest=smallest)

    def of_moments(
        self,
        moments: Moments,
        spectrum: Spectrum | RowSpectrum | None,
        common: Array | None,
        dtype: object,
        root_weight: np.ndarray | None = None,
    ) -> Adjustment:
        """The adjustment of one domain; see `of_pool` for what domains have in common.

        Where the roots of the rows' weights are given, few rows also say what the adjustment does
        to their own scores.
        """
        rho, centered = moments.shrinkage(self.shrinkage, centered=self.centered), self.centered
        scale = moments.scale(centered=centered)
        if not self.can_invert(moments):
            raise RowsAlike(
                "these rows are all the same, or differ by no more than rounding; adjusting needs "
                "rows that differ, so use the head as it is"
            )
        target = "identity" if common is not None else self.target
        if rho == 1.0:
            return Adjustment(moments.d, ridge_of(rho, target, scale) ** -0.5, common=common)
        if spectrum is None and moments.factor is not None:
            spectrum = RowSpectrum.of_moments(moments, centered=centered, common=common)
        elif spectrum is None:
            S = moments.second_moment(centered=centered)
            seen = S if common is None else like(common, S, S.dtype) @ S @ like(common, S, S.dtype)
            spectrum = Spectrum.of_matrix(seen, dtype)
        ridge = ridge_of(rho, target, spectrum.scale)
        if isinstance(spectrum, RowSpectrum):
            return spectrum.inverse_root(rho, ridge, root_weight=root_weight)
        return replace(spectrum.inverse_root(rho, ridge), common=common)

    def of_pool(self, moments: Sequence[Moments], dtype: object) -> Array | None:
        """What domains have in common, where they are shrunk towards their pool.

        C, the symmetric inverse root of the equal-weight mean of their second moments. Domains
        are adjusted in its coordinates, where the pool is the identity: ``(1 - ρ) S + ρ P`` is
        whitened exactly, few rows need no (d, d) matrix of their own, and a linear change of the
        features changes nothing.
        """
        if not self.adjust or self.target != "pooled":
            return None
        P = pooled_second_moment(moments, centered=self.centered)
        # What is within the rounding of the features' own products is noise.
        rtol = P.shape[0] * float(namespace(P).finfo(dtype or P.dtype).eps)
        return like(inverse_sqrt(P, rtol=rtol), P, dtype or P.dtype)


def check_whitening(head: Any) -> None:
    """Check the constructor values that make a `Whitening`."""
    check_number("shrinkage", head.shrinkage, 0.0, 1.0, also=SHRINKAGE_RULES)
    check_choice("shrinkage_target", head.shrinkage_target, SHRINKAGE_TARGETS)
    check_strength(head.shrinkage, head.shrinkage_target)
    check_choice("centered", head.centered, (True, False))
    check_choice("adjust", head.adjust, (True, False))


def check_strength(shrinkage: float | str, target: str) -> None:
    """A rule is for the target that it was derived for."""
    if isinstance(shrinkage, str) and target == "pooled":
        raise ValueError(
            f"shrinkage={shrinkage!r} is the best strength towards a multiple of the identity; "
            "with shrinkage_target='pooled' use a number"
        )


class DomainStatistics:
    """Moments, spectra and the last adjustment of one domain's rows, when first asked for.

    Several fits, in several threads, may share one: each thing is computed once.
    """

    def __init__(self, X: Array, index: Index, weight: np.ndarray) -> None:
        self.X, self.index, self.weight = X, index, weight
        self._lock = RLock()
        self._moments: Moments | None = None
        self._light: FeatureMoments | None = None
        self._spectra: dict[bool, Spectrum | RowSpectrum] = {}
        self._last: tuple[Whitening, Adjustment] | None = None

    @property
    def moments(self) -> Moments:
        """In the array library of X."""
        with self._lock:
            if self._moments is None:
                self._moments = _moments_of(self._part())
            return self._moments

    @property
    def mean_and_variances(self) -> tuple[np.ndarray, ...]:
        """On the host; from the moments where they are known."""
        with self._lock:
            if self._moments is not None:
                return to_numpy(self._moments.mean), to_numpy(self._moments.variances)
            if self._light is None:
                self._light = FeatureMoments.of(self.X, self.index, self.weight)
            return self._light.mean, self._light.variances

    @property
    def knows_moments(self) -> bool:
        """Whether the moments have been computed."""
        return self._moments is not None

    @property
    def knows_means(self) -> bool:
        """Whether mean and variances have been computed."""
        return self._moments is not None or self._light is not None

    def learn(self, *, moments: Moments | None = None, light: FeatureMoments | None = None) -> None:
        """Take what a pass over several domains has found."""
        with self._lock:
            self._moments = moments or self._moments
            self._light = light or self._light

    def _part(self) -> Part:
        """The rows with their weights, where these differ."""
        return Part(self.X, self.index, () if np.all(self.weight == 1.0) else (self.weight,))

    def spectrum(self, *, centered: bool) -> Spectrum | RowSpectrum:
        """Spectrum of the second moment, through the rows where they are few."""
        with self._lock:
            if centered not in self._spectra:
                moments = self.moments
                if moments.factor is not None:
                    self._spectra[centered] = RowSpectrum.of_moments(moments, centered=centered)
                else:
                    S = moments.second_moment(centered=centered)
                    self._spectra[centered] = Spectrum.of_matrix(S, work_dtype(self.X))
            return self._spectra[centered]

    def adjustment(self, whitening: Whitening, common: Array | None = None) -> Adjustment:
        """The adjustment, in common coordinates where there are any.

        Only the last is kept: a search over options visits them one after the other.
        """
        with self._lock:
            if common is None and self._last is not None and self._last[0] == whitening:
                return self._last[1]
            result = self._adjustment(whitening, common)
            if common is None:
                self._last = whitening, result
            return result

    def _adjustment(self, whitening: Whitening, common: Array | None) -> Adjustment:
        moments, centered = self.moments, whitening.centered
        spectrum = None
        if common is None and moments.shrinkage(whitening.shrinkage, centered=centered) < 1.0:
            W = self._without_spectrum(whitening)
            if W is not None:
                return Adjustment(moments.d, 0.0, W)
            spectrum = self.spectrum(centered=centered)
        here = not is_foreign(self.X) and not isinstance(self.X, SpreadRows)
        root = self.weight**0.5 if here else None
        return whitening.of_moments(moments, spectrum, common, work_dtype(self.X), root)

    def _without_spectrum(self, whitening: Whitening) -> Array | None:
        """The inverse root without a full decomposition, where that is quicker."""
        moments, centered, dtype = self.moments, whitening.centered, work_dtype(self.X)
        rho = moments.shrinkage(whitening.shrinkage, centered=centered)
        if centered in self._spectra or moments.factor is not None:
            return None
        ridge = ridge_of(rho, whitening.target, moments.scale(centered=centered))
        if on_accelerator(self.X):
            if moments.d < MIN_ITERATED or not ridge > 0:
                return None
            S = moments.second_moment(centered=centered)
            W = newton_schulz_inverse_root(S, rho, ridge)
            return None if W is None else like(W, S, dtype)
        if moments.d < MIN_FEATURES or rho < MIN_SHRINKAGE or dtype != namespace(self.X).float32:
            return None
        return deflated_inverse_root(moments.second_moment(centered=centered), rho, ridge, dtype)


def _moments_of(part: Part, _: None = None) -> Moments:
    return Moments.of(part.X, part.index, part.columns[0] if part.columns else None)


def _feature_moments_of(part: Part, _: None) -> FeatureMoments:
    return FeatureMoments.of(part.X, part.index, part.columns[0])


def fetch_moments(domains: Sequence[DomainStatistics]) -> None:
    """Moments of domains whose rows lie with workers: all in one pass, where memory allows it."""
    new = [domain for domain in domains if not domain.knows_moments]
    for batch in _batches(new):
        found = visit_once(_moments_of, [domain._part() for domain in batch])
        for domain, moments in zip(batch, found, strict=True):
            domain.learn(moments=moments)


def fetch_feature_moments(domains: Sequence[DomainStatistics]) -> None:
    """Mean and variances of domains whose rows lie with workers, in one pass."""
    new = [domain for domain in domains if not domain.knows_means]
    parts = [Part(domain.X, domain.index, (domain.weight,)) for domain in new]
    for domain, found in zip(new, visit_once(_feature_moments_of, parts), strict=True):
        domain.learn(light=found)


def _batches(domains: Sequence[DomainStatistics]) -> Iterator[Sequence[DomainStatistics]]:
    """As many domains at a time as a worker can add up at once."""
    d = domains[0].X.shape[1] if domains else 1
    step = max(1, _PASS_BYTES // (8 * d**2))
    return (domains[i : i + step] for i in range(0, len(domains), step))


def guess_adjustment(
    guess: str | Mapping[Any, float],
    adjustments: list[Adjustment],
    labels: Sequence[Hashable],
    moments: Sequence[Moments],
    whitening: Whitening,
) -> Adjustment:
    """The adjustment of a domain nobody has seen.

    ``"mean"`` averages the adjustments; ``"covariance"`` is the inverse root of the averaged
    shrunk second moments; a mapping weighs the domains it names.
    """
    if isinstance(guess, str) and guess == "covariance" and whitening.adjust:
        common = adjustments[0].common
        if common is not None:
            # Shrinkage towards the pool moves weight between domains and not their mean.
            return Adjustment(adjustments[0].d, 1.0, common=common)
        return _mean_root(moments, whitening)
    weights = None if isinstance(guess, str) else check_domain_weights(guess, list(labels))
    return average(adjustments, weights)


def _mean_root(moments: Sequence[Moments], whitening: Whitening) -> Adjustment:
    """The inverse root of the averaged shrunk second moments."""
    rule, centered = whitening.shrinkage, whitening.centered
    rhos = np.array([m.shrinkage(rule, centered=centered) for m in moments])
    S = weighted_second_moment(moments, ((1.0 - rhos) / len(rhos)).tolist(), centered=centered)
    scales = [m.scale(centered=centered) for m in moments]
    ridges = [ridge_of(rho, whitening.target, s) for rho, s in zip(rhos, scales, strict=True)]
    return Spectrum.of_matrix(S + float(np.mean(ridges)) * identity(S)).inverse_root()


# Statistics by domain label, for fits whose domains have the same rows in the same order.
Shared = MutableMapping[Hashable, DomainStatistics]
