"""What the rows of one domain are reduced to, once: moments, spectra, an adjustment."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, MutableMapping, Sequence
from threading import RLock

import numpy as np

from skdare.arrays import (
    Array,
    Index,
    is_foreign,
    like,
    namespace,
    on_accelerator,
    to_numpy,
    work_dtype,
)
from skdare.arrays.passes import Part, SpreadRows, visit_once
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments, ridge_of
from skdare.whitening.roots.eigen import Spectrum
from skdare.whitening.roots.few_rows import RowSpectrum
from skdare.whitening.roots.krylov import MIN_FEATURES, MIN_SHRINKAGE, deflated_inverse_root
from skdare.whitening.roots.newton_schulz import MIN_ITERATED, newton_schulz_inverse_root
from skdare.whitening.row_sums import FeatureMoments
from skdare.whitening.whitening import Whitening

# The most that one pass brings back of moments from a worker.
_PASS_BYTES = 1 << 30


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


# Statistics by domain label, for fits whose domains have the same rows in the same order.
Shared = MutableMapping[Hashable, DomainStatistics]
