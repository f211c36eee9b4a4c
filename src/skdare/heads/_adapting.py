"""What an adjusted head does with the unlabelled rows of new domains."""

from __future__ import annotations

from os import PathLike
from typing import Self

import numpy as np

from skdare.adapting.adaptation import check_adaptable
from skdare.adapting.adapter import Adapter
from skdare.adapting.fleet import Fleet
from skdare.adapting.stream_file import DAMAGE, StreamFile
from skdare.arrays import Array
from skdare.heads._estimator import Head


class Adapting(Head):
    """A head that adapts: to rows at hand, to a stream, to many streams."""

    def adapt(self, X: Array, *, prior_rows: float | None = None, min_rows: int = 2) -> Self:
        """A new head for the domain these unlabelled rows come from; this one is untouched.

        Parameters
        ----------
        X : array of shape (m, d)
        prior_rows, min_rows
            See `adapter`.

        Returns
        -------
        head of the same class
        """
        return self.adapter(prior_rows=prior_rows, min_rows=min_rows).partial_fit(X).head_

    def adapter(
        self,
        *,
        prior_rows: float | None = None,
        min_rows: int = 2,
        half_life: float | None = None,
        staleness: float = 0.0,
    ) -> Adapter:
        """An object that takes the unlabelled rows of a new domain in chunks.

        Parameters
        ----------
        prior_rows : float, optional
            The averaged adjustment counts as this many rows of the new domain; 0 is a hard
            switch to the new domain's own moments. Default: the number of features.
        min_rows : int, default=2
            Rows below which it refuses to give a head.
        half_life : float, optional
            Rows after which a row counts half, for a domain that drifts. Default: never.
        staleness : float in [0, 0.1], default=0.0
            How far scores may be, relative, from those of all rows seen, so that the inverse root
            need not be computed for every head.

        Returns
        -------
        Adapter
        """
        return Adapter(
            self,
            prior_rows=prior_rows,
            min_rows=min_rows,
            half_life=half_life,
            staleness=staleness,
        )

    def fleet(
        self,
        *,
        rank: int = 16,
        prior_rows: float | None = None,
        min_rows: int = 2,
        half_life: float | None = None,
    ) -> Fleet:
        """An object that takes the unlabelled rows of many devices, each a domain of its own.

        Parameters
        ----------
        rank : int, default=16
            How many directions of a device's scatter are kept.
        prior_rows, min_rows, half_life
            As of `adapter`, for each device.

        Returns
        -------
        Fleet
        """
        return Fleet(self, rank=rank, prior_rows=prior_rows, min_rows=min_rows, half_life=half_life)

    def onnx_inputs(self) -> dict[str, np.ndarray]:
        """What the adaptable graph of `to_onnx` is given beside ``X`` to predict as this head.

        ``{"X": X, **head.adapt(rows).onnx_inputs()}`` is all that a session needs for the domain
        of these rows. A head that was not adapted has such inputs, too, for a domain without rows.

        Returns
        -------
        dict of float32 arrays
            ``whitener`` (d, d), ``mean`` (d,) and ``intercept``, the scores at that mean.

        Examples
        --------
        >>> from skdare import DARERegressor
        >>> from skdare.datasets import make_latent_domains
        >>> data = make_latent_domains(task="regression", random_state=0)
        >>> train, new = data.domains != 3, data.X[data.domains == 3]
        >>> head = DARERegressor().fit(data.X[train], data.y[train], domains=data.domains[train])
        >>> {name: array.shape for name, array in head.adapt(new).onnx_inputs().items()}
        {'whitener': (8, 8), 'mean': (8,), 'intercept': (1,)}
        """
        B, linear = self._onnx_weights(), self._linear_map()
        if hasattr(self, "adapted_rows_"):
            W = self.adjustment_.dense()
        else:
            W = _matrix_from(B, linear.coef.T)
        mean = getattr(self, "adapted_mean_", self.adaptation_.fitted.mean).astype(np.float32)
        b = linear.coef @ mean.astype(np.float64) + linear.intercept
        return {
            "whitener": np.asarray(W, dtype=np.float32),
            "mean": mean,
            "intercept": b.astype(np.float32),
        }

    def _onnx_weights(self) -> np.ndarray:
        check_adaptable(self)
        if not getattr(self, "adapts_", True):
            raise ValueError(
                f"adapting would change nothing: {self.choice_}; leave adaptable at False, or set "
                "strategies=('raw', 'centered') and fit again"
            )
        return self.adaptation_.fitted.B * getattr(self, "_spread", 1.0)

    def resume(self, path: str | PathLike[str]) -> Adapter | Fleet:
        """The adapter or fleet that ``save`` wrote to a file, to go on from there.

        Parameters
        ----------
        path : str or path
            Written with this head; any other file is refused.

        Returns
        -------
        Adapter or Fleet
        """
        check_adaptable(self)
        file = StreamFile.read(path, self)
        kinds: dict[str, type[Adapter] | type[Fleet]] = {"adapter": Adapter, "fleet": Fleet}
        try:
            return kinds[file.kind]._from_file(self, file)
        except DAMAGE as error:
            raise ValueError(
                f"{path} was altered since it was saved; start a new stream with adapter() or "
                "fleet()"
            ) from error


def _matrix_from(B: np.ndarray, V: np.ndarray) -> np.ndarray:
    """A matrix W with W B = V: that of least norm."""
    # The weights of three or more classes sum to zero, in B and in V alike, up to rounding.
    W = V @ np.linalg.pinv(B, rcond=1e-6)
    if np.abs(W @ B - V).max() > 1e-6 * np.abs(V).max():
        raise ValueError(
            "the weights that adapt uses cannot give this head's own; use to_onnx() without "
            "adaptable until there are rows to adapt to"
        )
    return W
