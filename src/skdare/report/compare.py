"""The bench in Python: arrays and estimators in, the summary of a report out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from skdare.bench.heads import HEADS, BenchHead, heads_of
from skdare.bench.run import run_bench
from skdare.bench.settings import Settings
from skdare.data import DomainData
from skdare.errors import InputError
from skdare.report.summary import Summary


def compare(
    X: Any,
    y: Any,
    *,
    domains: Any,
    groups: Any = None,
    heads: Sequence[Any] | Mapping[str, Any] = (),
    metric: str = "",
    held_out: Sequence[str] = (),
    repeats: int = 1,
    out: str | Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Summary:
    """Hold each domain out in turn, and compare heads.

    Parameters
    ----------
    X : array or DataFrame of shape (n, d)
    y, domains, groups : array of shape (n,)
        Rows whose group is scored are not trained on.
    heads : sequence, or mapping from name to estimator
        Names of the bench, classifiers or regressors of scikit-learn's kind, or both. One that can
        ``adapt`` is scored twice. Default: those of ``skdare bench``.
    metric, held_out, repeats
        As in `Settings`.
    out : path, optional
        Folder for the records, so that an interrupted comparison goes on where it was. Default: a
        folder that is deleted.
    progress : function of (text, done, total), optional

    Returns
    -------
    Summary
        Its text is the table of ``skdare bench``; ``frame`` has a row for each trial.

    Examples
    --------
    >>> from skdare.report import compare
    >>> from skdare.data import make_latent_domains
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_latent_domains(3, 60, random_state=0)
    >>> result = compare(data.X, data.y, domains=data.domains, heads=["dare", LogisticRegression()])
    >>> list(result.scores)
    ['erm', 'dare', 'LogisticRegression']
    """
    data = DomainData.of(X, y, domains=domains, groups=groups)
    if isinstance(heads, Mapping):
        named, brought = [], dict(heads)
    else:
        named = [head for head in heads if isinstance(head, str)]
        brought = {type(head).__name__: head for head in heads if not isinstance(head, str)}
        if len(brought) + len(named) < len(heads):
            raise InputError("heads has two of a name", "pass a dict with a name for each")
    own: dict[str, BenchHead] = {}
    versions: dict[str, str] = {}
    for name, head in brought.items():
        if isinstance(head, type) or not hasattr(head, "fit"):
            raise InputError(f"heads has {head!r}", "pass estimators, not fitted, and names")
        rows = heads_of(head, name)
        own |= rows
        versions |= dict.fromkeys(rows, repr(head))
    taken = own.keys() & HEADS.keys()
    if taken:
        raise InputError(f"a head of the bench is called {min(taken)}", "give yours another name")
    settings = Settings(tuple(named), tuple(map(str, held_out)), metric, repeats)

    with tempfile.TemporaryDirectory() if out is None else nullcontext(out) as folder:
        file = run_bench(
            data, folder, settings, estimators=own, versions=versions, progress=progress
        )
        return Summary.of(file)
