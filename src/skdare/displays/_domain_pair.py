"""The geometry of two domains: where their rows lie before and after adjustment.

Notation: m (d,) mean, C (d, d) covariance, W (d, d) adjustment, Q (d, 2) basis of a plane.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skdare._validation import InputError
from skdare.arrays import to_numpy
from skdare.displays._display import Display
from skdare.fitting.domain_fit import domain_fit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class PlaneEllipse:
    """Mean and covariance of a domain in a plane.

    Parameters
    ----------
    mean : array of shape (2,)
    covariance : array of shape (2, 2)
    """

    mean: np.ndarray
    covariance: np.ndarray

    def outline(self, deviations: float = 2.0) -> np.ndarray:
        """Points on the ellipse at this many standard deviations, (200, 2)."""
        angles = np.linspace(0.0, 2.0 * np.pi, 200)
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return self.mean + deviations * np.stack([np.cos(angles), np.sin(angles)], axis=1) @ root.T


@dataclass(eq=False)
class DomainPairDisplay(Display):
    """Two training domains as ellipses, before and after the adjustment that adapting makes.

    Each panel shows the plane in which the two differ most there: the direction between their
    means, or, where these are the same, that in which their covariances differ most; and the next
    in which those differ. Ellipses are at two standard deviations.

    Parameters
    ----------
    domains : pair of str
    before, after : pairs of PlaneEllipse

    Attributes
    ----------
    ax_ : tuple of two matplotlib axes
    figure_ : matplotlib figure

    Examples
    --------
    >>> from skdare import DAREClassifier
    >>> from skdare.datasets import make_latent_domains
    >>> from skdare.displays import DomainPairDisplay
    >>> data = make_latent_domains(random_state=0)
    >>> head = DAREClassifier().fit(data.X, data.y, domains=data.domains)
    >>> DomainPairDisplay.from_estimator(head, 0, 1).domains
    ('0', '1')
    """

    domains: tuple[str, str]
    before: tuple[PlaneEllipse, PlaneEllipse]
    after: tuple[PlaneEllipse, PlaneEllipse]

    @classmethod
    def from_estimator(
        cls, estimator: Any, first: Hashable, second: Hashable, *, ax: Any = None
    ) -> Self:
        """Draw two training domains of a fitted head.

        Parameters
        ----------
        estimator : fitted DARE head, or pipeline that ends in one
            Features are as the head sees them: after the steps before it, and standardised where it
            does that.
        first, second : labels of training domains
        ax : pair of matplotlib axes, optional
        """
        head = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        if not hasattr(head, "adjustments_"):
            raise InputError(
                f"a {type(head).__name__} keeps nothing of its training domains",
                "pass a fitted DARE head",
                argument="estimator",
            )
        fit = domain_fit_of(head)
        for label in (first, second):
            if label not in fit.moments:
                raise InputError(
                    f"no training domain is called {label!r}",
                    f"there are {', '.join(repr(one) for one in fit.moments)}",
                )
        moments = [fit.moments[label] for label in (first, second)]
        means = [np.asarray(m.mean, dtype=np.float64) for m in moments]
        covariances = [to_numpy(m.second_moment(centered=True)).astype(float) for m in moments]
        adjustments = [fit.adjustments[label] for label in (first, second)]
        centred = False
        if fit.adaptation is not None:
            adaptation = fit.adaptation
            adjustments = [adaptation.adjustment(m, adaptation.spectrum(m)) for m in moments]
            centred = adaptation.formulation.means.subtract_in_use
        adjusted_means = []
        adjusted_covariances = []
        for m, C, adjustment in zip(means, covariances, adjustments, strict=True):
            W = to_numpy(adjustment.to_numpy().apply(np.eye(len(m))))
            adjusted_means.append(W.T @ m * (not centred))
            adjusted_covariances.append(W.T @ C @ W)
        names = str(first), str(second)
        before = _in_plane(means, covariances)
        return cls(names, before, _in_plane(adjusted_means, adjusted_covariances)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the ellipses of both domains, before and after the adjustment.

        Parameters
        ----------
        ax : pair of matplotlib axes, optional
            Default: new ones.

        Returns
        -------
        self
        """
        import matplotlib.pyplot as plt

        from skdare.report._canvas import guides, short
        from skdare.report._pyplot import house_style
        from skdare.report._svg import PALETTE

        with house_style():
            if ax is None:
                _, ax = plt.subplots(1, 2, figsize=(6.6, 3.4), layout="constrained")
            axes: list[Axes] = list(np.ravel(ax))
            panels = (("before", self.before), ("after adjustment", self.after))
            for axis, (title, pair) in zip(axes, panels, strict=True):
                looks = zip(self.domains, pair, (PALETTE[1], PALETTE[2]), ("o", "s"), strict=True)
                for name, ellipse, color, marker in looks:
                    x, y = ellipse.outline().T
                    axis.fill(x, y, color=color, alpha=0.12, linewidth=0)
                    axis.plot(x, y, color=color, linewidth=1.2)
                    axis.plot(*ellipse.mean, marker, color=color, label=short(name, 20))
                axis.set_aspect("equal", adjustable="datalim")
                axis.set_title(title, fontsize=9, loc="left")
                same = bool(np.allclose(pair[0].mean, pair[1].mean))
                axis.set_xlabel("where covariances differ most" if same else "between the means")
                axis.set_ylabel("and second most" if same else "where covariances differ most")
                guides(axis, "both")
            axes[0].legend(loc="best")
        self._drawn_on(*axes)
        return self


def _in_plane(
    means: Sequence[np.ndarray], covariances: Sequence[np.ndarray]
) -> tuple[PlaneEllipse, PlaneEllipse]:
    """Both domains in the plane in which they differ most, with the middle at the origin."""
    difference = means[1] - means[0]
    spread = covariances[1] - covariances[0]
    scale = float(np.sqrt(np.trace(covariances[0] + covariances[1])))
    first = difference
    if np.linalg.norm(difference) <= 1e-9 * scale:  # centred: the two largest differences of spread
        first = _largest(spread)
    first = first / np.linalg.norm(first)
    rest = np.eye(len(first)) - np.outer(first, first)
    second = _largest(rest @ spread @ rest)
    second = second - first * (first @ second)
    second = second / max(float(np.linalg.norm(second)), np.finfo(float).tiny)
    Q = np.stack([first, second], axis=1)
    middle = 0.5 * (means[0] + means[1])
    pair = zip(means, covariances, strict=True)
    one, other = (PlaneEllipse(Q.T @ (m - middle), Q.T @ C @ Q) for m, C in pair)
    return one, other


def _largest(matrix: np.ndarray) -> np.ndarray:
    """Eigenvector of the largest eigenvalue by size."""
    values, vectors = np.linalg.eigh(matrix)
    largest: np.ndarray = vectors[:, np.abs(values).argmax()]
    return largest
