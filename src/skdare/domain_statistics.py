"""What the rows of one domain are reduced to, once: moments, spectra, an adjustment."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np

from skdare._array import (
    Array,
    Index,
    is_sparse,
    length,
    like,
    namespace,
    take,
    to_numpy,
    work_dtype,
)
from skdare._validation import check_choice, check_domain_weights, check_number
from skdare.adjustment import Adjustment, Spectrum, average
from skdare.deflation import MIN_FEATURES, MIN_SHRINKAGE, deflated_inverse_root
from skdare.moments import SHRINKAGE_RULES, Moments, pooled_second_moment
from skdare.passes import Part, visit_once
from skdare.row_sums import FeatureMoments

# The most that one pass brings back of moments from a worker.
_PASS_BYTES = 1 << 30
SHRINKAGE_TARGETS = ("scaled", "identity", "pooled")


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

    def of_moments(
        self, moments: Moments, spectrum: Spectrum | None, pool: Array | None, dtype: object
    ) -> Adjustment:
        """The adjustment of one domain."""
        rho = moments.shrinkage(self.shrinkage, centered=self.centered)
        if not moments.scale(centered=self.centered) > 0:
            raise ValueError("these rows are all the same; adjusting needs rows that differ")
        if self.target == "pooled" and pool is not None:
            S = moments.covariance(rho, pool, centered=self.centered)
            return Spectrum.of_matrix(S, dtype).inverse_root()
        if spectrum is None and rho < 1.0:
            spectrum = Spectrum.of_matrix(moments.second_moment(centered=self.centered), dtype)
        if spectrum is None:
            ridge = 1.0 if self.target == "identity" else moments.scale(centered=self.centered)
            return Adjustment(moments.d, ridge**-0.5)
        return spectrum.inverse_root(rho, self.target)


def check_whitening(head: Any) -> None:
    """Check the constructor values that make a `Whitening`."""
    check_number("shrinkage", head.shrinkage, 0.0, 1.0, also=SHRINKAGE_RULES)
    check_choice("shrinkage_target", head.shrinkage_target, SHRINKAGE_TARGETS)
    check_choice("centered", head.centered, (True, False))
    check_choice("adjust", head.adjust, (True, False))


class DomainStatistics:
    """Moments, spectra and the last adjustment of one domain's rows, when first asked for.

    Several fits, in several threads, may share one: each thing is computed once.
    """

    def __init__(self, X: Array, index: Index, weight: np.ndarray) -> None:
        self.X, self.index, self.weight = X, index, weight
        self._lock = RLock()
        self._moments: Moments | None = None
        self._light: FeatureMoments | None = None
        self._spectra: dict[bool, Spectrum] = {}
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
                m = self._moments
                diagonal = namespace(m.scatter).linalg.diagonal(m.scatter)
                return to_numpy(m.mean), to_numpy(diagonal) / m.n
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

    def _part(self) -> Part:
        """The rows with their weights, where these differ."""
        return Part(self.X, self.index, () if np.all(self.weight == 1.0) else (self.weight,))

    def spectrum(self, *, centered: bool) -> Spectrum:
        """Spectrum of the second moment, through its thin side where it has one."""
        with self._lock:
            if centered not in self._spectra:
                if self._is_thin and not is_sparse(self.X):
                    rows = self._deviations(centered)
                    self._spectra[centered] = Spectrum.of_rows(rows, self.moments.n)
                else:
                    S = self.moments.second_moment(centered=centered)
                    self._spectra[centered] = Spectrum.of_matrix(S, work_dtype(self.X))
            return self._spectra[centered]

    def adjustment(self, whitening: Whitening, pool: Array | None = None) -> Adjustment:
        """The adjustment, shrunk towards a pool where there is one.

        Only the last is kept: a search over options visits them one after the other.
        """
        with self._lock:
            if pool is None and self._last is not None and self._last[0] == whitening:
                return self._last[1]
            result = self._adjustment(whitening, pool)
            if pool is None:
                self._last = whitening, result
            return result

    def _adjustment(self, whitening: Whitening, pool: Array | None) -> Adjustment:
        moments, centered = self.moments, whitening.centered
        spectrum = None
        if pool is None and moments.shrinkage(whitening.shrinkage, centered=centered) < 1.0:
            W = self._deflated(whitening)
            if W is not None:
                return Adjustment(moments.d, 0.0, W)
            spectrum = self.spectrum(centered=centered)
        return whitening.of_moments(moments, spectrum, pool, work_dtype(self.X))

    @property
    def _is_thin(self) -> bool:
        return length(self.index) < self.X.shape[1]

    def _deviations(self, centered: bool) -> Array:
        """Rows minus their mean (or not), times the roots of their weights."""
        root = like(self.weight**0.5, self.X)
        rows = take(self.X, self.index)
        return (rows - like(self.moments.mean, self.X) if centered else rows) * root[:, None]

    def _deflated(self, whitening: Whitening) -> Array | None:
        """The inverse root from part of the spectrum, where that is quicker and float32 anyway."""
        moments, centered, dtype = self.moments, whitening.centered, work_dtype(self.X)
        rho = moments.shrinkage(whitening.shrinkage, centered=centered)
        if centered in self._spectra or self._is_thin:
            return None
        if moments.d < MIN_FEATURES or rho < MIN_SHRINKAGE or dtype != namespace(self.X).float32:
            return None
        ridge = rho * (1.0 if whitening.target == "identity" else moments.scale(centered=centered))
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
            domain._moments = moments


def fetch_feature_moments(domains: Sequence[DomainStatistics]) -> None:
    """Mean and variances of domains whose rows lie with workers, in one pass."""
    new = [domain for domain in domains if not domain.knows_means]
    parts = [Part(domain.X, domain.index, (domain.weight,)) for domain in new]
    for domain, found in zip(new, visit_once(_feature_moments_of, parts), strict=True):
        domain._light = found


def _batches(domains: Sequence[DomainStatistics]) -> Iterator[Sequence[DomainStatistics]]:
    """As many domains at a time as a worker can add up at once."""
    d = domains[0].X.shape[1] if domains else 1
    step = max(1, _PASS_BYTES // (8 * d**2))
    return (domains[i : i + step] for i in range(0, len(domains), step))


def adjustment_among(
    own: DomainStatistics, others: Sequence[DomainStatistics], whitening: Whitening
) -> Adjustment:
    """The adjustment of a domain beside others, towards whose pool it may be shrunk."""
    if whitening.target != "pooled":
        return own.adjustment(whitening)
    moments = [other.moments for other in others] or [own.moments]
    return own.adjustment(whitening, pooled_second_moment(moments, centered=whitening.centered))


def guess_adjustment(
    guess: str | Mapping,
    adjustments: list[Adjustment],
    labels: Sequence,
    moments: Sequence[Moments],
    whitening: Whitening,
) -> Adjustment:
    """The adjustment of a domain nobody has seen.

    ``"mean"`` averages the adjustments; ``"covariance"`` is the inverse root of the averaged
    shrunk second moments; a mapping weighs the domains it names.
    """
    if isinstance(guess, str) and guess == "covariance" and whitening.adjust:
        total = 0.0
        # Towards the others' pool, shrinkage moves weight between domains and not their mean.
        pooled = whitening.target == "pooled"
        target = "scaled" if pooled else whitening.target
        for m in moments:
            rho = 0.0 if pooled else whitening.shrinkage
            total = total + m.covariance(rho, target, centered=whitening.centered)
        return Spectrum.of_matrix(total / len(moments)).inverse_root()
    weights = None if isinstance(guess, str) else check_domain_weights(guess, list(labels))
    return average(adjustments, weights)


# Statistics by domain label, for fits whose domains have the same rows.
Shared = MutableMapping[Hashable, DomainStatistics]
