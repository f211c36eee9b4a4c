"""Features fine-tuned anew in every trial: a folder of stores, one for each domain and trial."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skdare.datasets._domain_data import DomainData
from skdare.datasets._manifest import MANIFEST
from skdare.datasets._read import read

Cell = tuple[str, int]  # held-out domain, trial


def read_fine_tuned(folder: str | Path) -> dict[Cell, DomainData]:
    """Read the feature stores in a folder, each of one held-out domain and one trial.

    Sub-folders may have any names: the stores themselves say which domain was held out, and in
    which trial. Hidden ones, and those without ``manifest.json``, are passed over.

    Parameters
    ----------
    folder : str or Path

    Returns
    -------
    dict from (held-out domain, trial) to DomainData
        All under the folder's name.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from skdare.datasets import make_latent_domains, read_fine_tuned, write_store
    >>> data = make_latent_domains(3, 20, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for trial in (0, 1):
    ...         made = {"held_out": "2", "trial": trial}
    ...         write_store(f"{folder}/two-{trial}", replace(data, made=made))
    ...     list(read_fine_tuned(folder))
    [('2', 0), ('2', 1)]
    """
    folder = Path(folder)
    # A store that is being written is hidden until it is whole.
    shown = (path for path in folder.iterdir() if not path.name.startswith("."))
    paths = sorted(path for path in shown if (path / MANIFEST).is_file())
    if not paths:
        raise ValueError(
            f"{folder} has no {MANIFEST}, and no folder in it has one; give a feature store, or "
            "a folder of them"
        )
    name = folder.resolve().name
    stores: dict[Cell, Path] = {}
    tables: dict[Cell, DomainData] = {}
    for path in paths:
        data = replace(read(path), name=name)
        cell = _cell(path, data)
        if cell in stores:
            raise ValueError(
                f"{stores[cell]} and {path} both hold out {cell[0]!r} in trial {cell[1]}; "
                "move one of them out of the folder"
            )
        stores[cell] = path
        tables[cell] = data
        _refuse_other_run(paths[0], next(iter(tables.values())), path, data)
    return dict(sorted(tables.items(), key=lambda item: item[0]))


def _refuse_other_run(first_path: Path, first: DomainData, path: Path, data: DomainData) -> None:
    """Refuse features of other rows, or of another network, than those of the first store."""
    for what in ("examples", "backbone", "weights"):
        before = (first.made or {}).get(what)
        now = (data.made or {}).get(what)
        if before != now:
            raise ValueError(
                f"{first_path} and {path} are of different runs: {what} {before} and {now}; keep "
                "one folder for each"
            )


def _cell(path: Path, data: DomainData) -> Cell:
    """The domain that was held out when the features were made, and the trial."""
    made = data.made or {}
    held_out = made.get("held_out")
    trial = made.get("trial")
    absent = [key for key in ("held_out", "trial") if made.get(key) is None]
    if absent:
        raise ValueError(
            f"{path} does not say in which trial and without which domain it was made (it lacks "
            f"made.{' and made.'.join(absent)}); pretrained features are given by themselves"
        )
    if isinstance(trial, bool) or not isinstance(trial, int) or trial < 0:
        raise ValueError(f"{path} has trial {trial!r}; it must be a whole number of 0 or more")
    return str(held_out), trial
