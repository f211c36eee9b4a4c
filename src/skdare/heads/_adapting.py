"""What an adjusted head does with the unlabelled rows of new domains."""

from __future__ import annotations

from os import PathLike
from typing import Self

from skdare._array import Array
from skdare.heads._adaptation import check_adaptable
from skdare.heads._adapter import Adapter
from skdare.heads._base import Head
from skdare.heads._fleet import Fleet
from skdare.heads._stream_file import StreamFile


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
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"{path} was altered since it was saved; start a new stream with adapter() or "
                "fleet()"
            ) from error
