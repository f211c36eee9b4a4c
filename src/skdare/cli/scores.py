"""The measured score of predictions, on rows whose target is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skdare.errors import InputError, unknown

if TYPE_CHECKING:
    import numpy as np

    from skdare.fitting.score import Metric

_DRAWS = 999
_EMPTY, _UNKNOWN = -2, -1


class Targets:
    """Cells of a table as targets of a head; a spreadsheet may write the class 5 as 5.0."""

    def __init__(self, model: Any) -> None:
        self.classes: list[Any] | None = None
        self._texts: dict[str, Any] = {}
        if hasattr(model, "classes_"):
            self.classes = model.classes_.tolist()
            self._texts = {str(float(c)): c for c in self.classes if type(c) is int}
            self._texts |= {str(c): c for c in self.classes}

    def of(self, cell: Any) -> Any:
        """The target; None if the cell is empty, an error if it is no target of the head."""
        text = "" if cell is None or cell != cell else str(cell).strip().removeprefix("'")
        if not text:
            return None
        if self.classes is None:
            try:
                return float(text)
            except ValueError as error:
                hint = "the head predicts numbers"
                raise InputError(f"label '{text}' is not a number", hint) from error
        if text not in self._texts:
            raise unknown("class of the head", text, self.classes)
        return self._texts[text]

    def codes(self, cells: Any) -> np.ndarray:
        """Targets as numbers: codes of classes, or the numbers of a regression."""
        import numpy as np

        codes = np.full(len(cells), np.nan if self.classes is None else _EMPTY)
        for row, cell in enumerate(cells):
            try:
                target = self.of(cell)
            except InputError:
                codes[row] = np.nan if self.classes is None else _UNKNOWN
                continue
            if target is not None:
                codes[row] = target if self.classes is None else self.classes.index(target)
        return codes

    @staticmethod
    def are_known(codes: np.ndarray) -> np.ndarray:
        """Which cells were not empty."""
        known: np.ndarray = (codes == codes) & (codes != _EMPTY)
        return known


def metric_of(model: Any) -> Metric:
    """The metric of the head's forecasts; accuracy or R² if it has none."""
    from skdare.fitting.score import Metric

    rehearsal = getattr(model, "rehearsal_", None)
    if rehearsal is not None:
        metric: Metric = rehearsal.metric
        return metric
    return Metric("accuracy" if hasattr(model, "classes_") else "r2", 0.0)


def bootstrap(metric: Metric, truth: np.ndarray, predicted: Sequence[np.ndarray]) -> np.ndarray:
    """Scores on draws of the rows, a column for each model, the same rows in all."""
    import numpy as np

    rng = np.random.default_rng(0)
    n = len(truth)
    rows = rng.integers(n, size=(_DRAWS, n))
    return np.array([[metric.score(truth[i], each[i]) for each in predicted] for i in rows])
