"""What a worker does: it visits the groups of rows in its share, and adds up the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skdare.arrays import Array, Index, RowReader, on_device, products_of
from skdare.arrays.passes import RowPart, Visit
from skdare.engines._tree import Node, PartResults, branches, total


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Neighbouring rows, and the parts that have some of them.

    Parameters
    ----------
    rows : slice
    parts : dict from part number to (index, columns)
        Which rows, by their numbers in X, and an entry of each column for each.
    """

    rows: slice
    parts: dict[int, tuple[Index, tuple[Array, ...]]]

    def parts_of(self, X: Array) -> dict[int, RowPart]:
        """The parts, by their numbers, as rows of X."""
        return {p: RowPart(X, index, columns) for p, (index, columns) in self.parts.items()}

    def parts_within(self, rows: Array) -> dict[int, RowPart]:
        """The parts, by their numbers, as rows of those of this group alone."""
        return {
            p: RowPart(rows, self._within(index), columns)
            for p, (index, columns) in self.parts.items()
        }

    def _within(self, index: Index) -> Index:
        start = self.rows.start
        if isinstance(index, slice):
            return slice(index.start - start, index.stop - start)
        return index - start


@dataclass(eq=False)
class Share:
    """The groups of one task.

    Parameters
    ----------
    first : int
        Number of its first group.
    groups : sequence of RowGroup
    reader : RowReader, optional
        Reads the rows of X where this is; without one they are handed over group by group.
    device : str, optional
        Where rows and columns are kept as torch tensors.
    """

    first: int
    groups: Sequence[RowGroup]
    reader: RowReader | None = None
    device: str | None = None
    _parts: dict[int, dict[int, RowPart]] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parts": {}}

    def parts(self, number: int, rows: Array | None) -> dict[int, RowPart]:
        """The parts in a group; made once, and kept where this share is."""
        if number not in self._parts:
            group = self.groups[number - self.first]
            if self.device is None:
                parts = group.parts_of(self.reader) if rows is None else group.parts_within(rows)
            else:
                read = self.reader[group.rows] if self.reader is not None else rows
                parts = {
                    p: replace(part, columns=on_device(part.columns, self.device))
                    for p, part in group.parts_within(on_device(read, self.device)).items()
                }
            self._parts[number] = parts
        return self._parts[number]


def visit_share(
    visit: Visit, share: Share, rows: Sequence[Array], arguments: Mapping[int, Any]
) -> dict[Node, PartResults]:
    """Results of every part, added up over the branches of the tree that the share has whole."""

    def leaf(node: Node) -> PartResults | None:
        level, number = node
        if level:
            return None
        parts = share.parts(number, rows[number - share.first] if rows else None)
        return {
            p: _visit_part(visit, part, arguments[p], share.device) for p, part in parts.items()
        }

    stop = share.first + len(share.groups)
    try:
        return {node: total(node, leaf) for node in branches(share.first, stop)}
    except Exception as error:
        if share.reader is not None:
            error.add_note("a worker raised this; files must be at the same path on every machine")
        raise


def _visit_part(visit: Visit, part: RowPart, argument: Any, device: str | None) -> Any:
    if device is None:
        return visit(part, argument)
    with products_of(part.X):
        result = visit(part, None if argument is None else on_device(argument, device))
    return result.to_numpy() if hasattr(result, "to_numpy") else result
