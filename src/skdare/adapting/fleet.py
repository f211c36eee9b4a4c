"""Many new domains at once, each a device with a stream of its own and a sketch of its moments."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier

from skdare._safe_text import counted
from skdare._validation import Labels, check_count, check_domains, check_number
from skdare.adapting.adapter import check_adaptable
from skdare.adapting.sketch import LowRankMoments, Sketches
from skdare.adapting.stream_file import StreamFile, head_digest
from skdare.adapting.stream_moments import Forgetting
from skdare.arrays import Array, Index, dense_rows, to_numpy
from skdare.arrays.passes import all_within
from skdare.fitting.domain_fit import Adaptation, DomainFit, domain_fit_of
from skdare.objective.scores import class_numbers, linear_scores, probabilities
from skdare.persist import LABELS, HeaderArrays, ReadContext
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.prior import Trust
from skdare.whitening.shrinkage import ridge_of

# Sizes of features that float32 holds with all their digits, and sums of them.
_FLOAT32_RANGE = 1e-30, 1e30


class Fleet:
    """Adapts one head to many devices, each a domain of its own, in a few vectors for each.

    Of every device it keeps the mean, the ``rank`` largest directions of its scatter, and how much
    variance is left out, which is taken to be the same in all other directions. While a device
    has at most ``rank`` rows nothing is left out, and its head is the one an `Adapter` gives. A
    fleet keeps no rows, so it does not check them before it adapts, as an adapter of a choosing
    head does. With the default shrinkage of 0.9 little depends on what is left out; with one of
    0.1, where whitening is nearly complete, much does (benchmarks/README.md). Memory is
    ``bytes_per_device`` for each, labels apart; no (d, d) matrix is made but in `head_of`.

    Parameters
    ----------
    head : fitted DARE head
        Never modified. Its shrinkage must be a number, towards a multiple of the identity.
    rank : int, default=16
    prior_rows : float, optional
        The training domains' averages count as this many rows of every device; 0 is a hard
        switch. Default: as of an `Adapter`.
    min_rows : int, default=2
        Rows below which a device has the head as it is; `head_of` refuses. So it is for a
        device whose rows are all the same.
    half_life : float, optional
        Rows of a device after which one of its rows counts half. Default: never.

    Attributes
    ----------
    devices_ : list of device labels
    bytes_per_device : int

    Examples
    --------
    >>> from skdare import DAREClassifier
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(6, random_state=0)
    >>> train = data.domains < 3
    >>> head = DAREClassifier().fit(data.X[train], data.y[train], domains=data.domains[train])
    >>> X, devices = data.X[~train], data.domains[~train]
    >>> fleet = head.fleet(rank=4).partial_fit(X, devices)
    >>> fleet
    Fleet(DAREClassifier, rank 4, 3 devices, 192 bytes each)
    >>> fleet.predict(X, devices).shape
    (900,)
    """

    def __init__(
        self,
        head: Any,
        *,
        rank: int = 16,
        prior_rows: float | None = None,
        min_rows: int = 2,
        half_life: float | None = None,
    ) -> None:
        check_count("rank", rank, 1)
        check_number("prior_rows", prior_rows, also=(None,))
        check_count("min_rows", min_rows, 2)
        forgetting = Forgetting(half_life)
        check_adaptable(head)
        _check_sketchable(head)
        _check_kept_in_float32(head)
        self._head = head._uncalibrated()
        self._min_rows = min_rows
        self._prior_rows = prior_rows
        self._sketches = Sketches(rank, head.n_features_in_, forgetting)
        self._slots: dict[Hashable, int] = {}
        self._guess: tuple[Adaptation, np.ndarray] | None = None

    def __repr__(self) -> str:
        return (
            f"Fleet({type(self._head).__name__}, rank {self._sketches.rank}, "
            f"{len(self._slots)} devices, {self.bytes_per_device} bytes each)"
        )

    @property
    def devices_(self) -> list[Hashable]:
        """The devices of which rows were seen, in that order."""
        return list(self._slots)

    @property
    def bytes_per_device(self) -> int:
        """Bytes held for one device, its label apart: about ``4 d (rank + 1)``."""
        return self._sketches.bytes_each

    def n_seen(self, device: Hashable) -> int:
        """How many rows of a device were seen."""
        return int(self._sketches.seen[self._slots[device]]) if device in self._slots else 0

    def partial_fit(self, X: Array, devices: Labels) -> Self:
        """Take more rows, of any devices, known or new.

        Parameters
        ----------
        X : array of shape (m, d)
        devices : sequence of m labels
            Any hashable; they are saved only where they are text, numbers, or tuples of these.

        Returns
        -------
        self
        """
        X, groups = self._groups(X, devices)
        _check_reach(X)
        for device, index in groups:
            if device not in self._slots:
                self._slots[device] = self._sketches.new()
            self._sketches.add(self._slots[device], dense_rows(X, index))
        return self

    def head_of(self, device: Hashable) -> Any:
        """The head of one device: a new object, as from an `Adapter`."""
        if self.n_seen(device) < self._min_rows:
            raise ValueError(
                f"adapting needs at least {counted(self._min_rows, 'row')} of a device, and device "
                f"{device!r} has {self.n_seen(device)}; use the head as it is until then"
            )
        moments, trust = self._moments(device)
        if not moments.varies:
            raise ValueError(
                f"the rows of device {device!r} are all the same; adjusting needs rows that "
                "differ, so use the head as it is until they do"
            )
        rest, weights = self._inverse_root(moments)
        adjustment = Adjustment(moments.K.shape[1], rest, None, moments.K.T @ moments.Q, weights)
        adaptation = self._adaptation
        return self._head._adapted(
            adaptation.blended(adjustment, trust),
            (adaptation.B, adaptation.b),
            moments.mean,
            trust,
            self.n_seen(device),
        )

    def decision_function(self, X: Array, devices: Labels) -> np.ndarray:
        """Scores of a classifier, every row by the head of its device: (m,) or (m, k)."""
        self._check_classifier("decision_function")
        F = self._scores(X, devices)
        return F[:, 0] if F.shape[1] == 1 else F

    def predict_proba(self, X: Array, devices: Labels) -> np.ndarray:
        """Class probabilities, every row by the head of its device."""
        self._check_classifier("predict_proba")
        return probabilities(self._scores(X, devices))

    def predict(self, X: Array, devices: Labels) -> np.ndarray:
        """Class labels or numbers, every row by the head of its device.

        A device with fewer than ``min_rows`` rows has the head as it is, as one never seen.

        Parameters
        ----------
        X : array of shape (m, d)
        devices : sequence of m labels
        """
        F = self._scores(X, devices)
        return self._head.classes_[class_numbers(F)] if self._is_classifier else F[:, 0]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state of all devices to a file, which ``head.resume`` goes on from.

        The file is replaced in one step, and holds no code. The head itself is not in it.

        Parameters
        ----------
        path : str or path
        """
        devices = LABELS.write(self.devices_, HeaderArrays(), "devices")
        options = {
            "rank": int(self._sketches.rank),
            "prior_rows": self._prior_rows,
            "min_rows": int(self._min_rows),
            "half_life": self._sketches.forgetting.half_life,
        }
        header = {"digest": head_digest(self._head), "options": options, "devices": devices}
        sketches = self._sketches
        arrays = {name: getattr(sketches, name)[: sketches.size] for name in sketches.FIELDS}
        StreamFile("fleet", header, arrays).write(path, partial(self._from_file, self._head))

    @classmethod
    def _from_file(cls, head: Any, file: StreamFile) -> Fleet:
        """The fleet that a file holds."""
        fleet = cls(head, **file.header["options"])
        devices = LABELS.read(file.header["devices"], ReadContext({}, {}, "devices"))
        fleet._slots = {device: slot for slot, device in enumerate(devices)}
        sizes = {"s": len(fleet._slots), "d": head.n_features_in_, "r": fleet._sketches.rank}
        arrays = file.checked(Sketches.SHAPES, sizes)
        if devices:
            fleet._sketches.restore(arrays)
        return fleet

    @property
    def _adaptation(self) -> Adaptation:
        fit: DomainFit = self._head._domain_fit  # the last one; checked when the stream began
        assert fit.adaptation is not None
        return fit.adaptation

    @property
    def _guessed(self) -> np.ndarray:
        """Weights by the averaged guess, computed once for each fit of the head."""
        adaptation = self._adaptation
        if self._guess is None or self._guess[0] is not adaptation:
            self._guess = adaptation, adaptation.guess.apply(adaptation.B)
        return self._guess[1]

    @property
    def _is_classifier(self) -> bool:
        return bool(is_classifier(self._head))

    def _check_classifier(self, name: str) -> None:
        if not self._is_classifier:
            raise AttributeError(f"a fleet of a regressor has no {name}; use predict")

    def _groups(self, X: Any, devices: Any) -> tuple[Array, list[tuple[Hashable, Index]]]:
        X = self._head._inner_rows(X)
        if devices is None:
            raise ValueError("devices is None; pass one label per row")
        rows = check_domains(devices, X.shape[0], np.ones(X.shape[0]), name="devices")
        return X, list(zip(rows.labels, rows.index, strict=True))

    def _moments(self, device: Hashable) -> tuple[LowRankMoments, Trust]:
        centered = self._adaptation.whitening.centered
        moments = self._sketches.moments(self._slots[device], centered=centered)
        return moments, self._adaptation.trust(moments.n, self._prior_rows)

    def _inverse_root(self, moments: LowRankMoments) -> tuple[float, np.ndarray]:
        """Inverse root of the shrunk second moment: everywhere, and more along its directions."""
        whitening = self._adaptation.whitening
        if not whitening.adjust:
            return self._adaptation.guess.scale, np.zeros(len(moments.values))
        rho = whitening.shrinkage
        assert not isinstance(rho, str)  # refused at the start
        return moments.inverse_root(rho, ridge_of(rho, whitening.target, moments.scale))

    def _scores(self, X: Any, devices: Any) -> np.ndarray:
        """(m, k) in float64, in the units of the targets."""
        X, groups = self._groups(X, devices)
        head = self._head._inner()
        B = self._adaptation.B
        # Two products for the rows of all devices; what a device adds has few columns.
        V = np.concatenate([B, self._guessed], axis=1)
        shared = to_numpy(linear_scores(X, slice(0, X.shape[0]), V, 0.0))
        F = np.empty((X.shape[0], B.shape[1]))
        for device, index in groups:
            share, adapted = self._device_scores(device, X, index, shared[index])
            F[index] = share * head._targets.in_target_units(adapted)
            if share < 1.0:
                coef, intercept = head.coef_, head.intercept_
                if share > 0.0:  # as `head_of` blends them
                    coef, intercept = head._domain_fit.unadapted or (coef, intercept)
                scores = to_numpy(linear_scores(X, index, np.atleast_2d(coef).T, intercept))
                F[index] += (1.0 - share) * scores
        return F

    def _device_scores(
        self, device: Hashable, X: Array, index: Index, shared: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """X V + b by the low-rank form, where ``shared`` is X [B, guess B], and what it counts."""
        unknown = 0.0, np.zeros((shared.shape[0], shared.shape[1] // 2))
        if self.n_seen(device) < self._min_rows:
            return unknown
        moments, trust = self._moments(device)
        if not moments.varies:
            return unknown
        rows = dense_rows(X, index)
        B = self._adaptation.B
        k = B.shape[1]
        rest, weights = self._inverse_root(moments)
        # Along unit vectors, not along K: float32 need not hold the squares of the features.
        U = moments.K.T @ moments.Q
        C = weights[:, None] * (U.T @ B)
        scores = rest * shared[:, :k] + (rows @ U.astype(rows.dtype)).astype(np.float64) @ C
        share = trust.adjustment
        F = share * scores + (1.0 - share) * shared[:, k:] + self._adaptation.b
        shift = self._adaptation.shift(moments.mean, trust)
        if shift is None:
            return trust.head, F
        at_shift = rest * (shift @ B) + (shift @ U) @ C
        F = F - share * at_shift - (1.0 - share) * (shift @ self._guessed)
        return trust.head, F


def _check_reach(X: Array) -> None:
    """Float32, which sketches are kept in, holds these rows."""
    if not all_within(X, _FLOAT32_RANGE[1]):
        raise ValueError(
            f"a fleet keeps float32, and these rows reach beyond {_FLOAT32_RANGE[1]:.0e}; divide "
            "the features by a constant and fit again, or use an adapter for each device"
        )


def _check_kept_in_float32(head: Any) -> None:
    """The training domains had features that float32 can hold."""
    scales = [m.scale(centered=False) ** 0.5 for m in head.moments_.values()]
    low, high = _FLOAT32_RANGE
    if not low < max(scales) < high:
        raise ValueError(
            f"a fleet keeps float32, and the features are about {max(scales):.0e}; multiply or "
            "divide them by a constant and fit again, or use an adapter for each device"
        )


def _check_sketchable(head: Any) -> None:
    """The head adapts, by a shrinkage that a sketch can follow."""
    fit = domain_fit_of(head)
    if fit.declined is not None:
        raise ValueError(
            f"a fleet would change nothing. {fit.declined} Use the head as it is; or, to adapt all "
            "the same, fit with strategies=('raw',)"
        )
    assert fit.adaptation is not None
    if fit.adaptation.mixture is not None:
        raise ValueError(
            "a fleet keeps no rows, and this head adapts by looking for the classes among them; "
            "use an adapter for each device, or leave mixtures out of what the head may choose"
        )
    whitening = fit.adaptation.whitening
    if whitening.target in ("pooled", "diagonal"):
        raise ValueError(
            "a fleet keeps a few directions of each device and shrinks towards a multiple of the "
            "identity; fit with shrinkage_target='scaled' or 'identity' (a choosing head with "
            "strategies=('raw',) or ('center',)), or use an adapter for each device"
        )
    if isinstance(whitening.shrinkage, str):
        raise ValueError(
            f"shrinkage is {whitening.shrinkage!r}, and a sketch cannot estimate it; fit with a "
            "number, or use an adapter for each device"
        )
