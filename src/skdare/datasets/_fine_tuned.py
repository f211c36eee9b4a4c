"""Features fine-tuned anew in every trial: a folder of stores, one for each domain and trial."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skdare.datasets._domain_data import DomainData
from skdare.datasets._manifest import MANIFEST
from skdare.datasets._read import read

Place = tuple[str, int]  # held-out domain, trial


def read_fine_tuned(folder: str | Path) -> dict[Place, DomainData]:
    """Read the feature stores in a folder, each of one held-out domain and one trial.

    Sub-folders may have any names: which domain was held out, and in which trial, is told by
    the stores themselves. Hidden ones, and those without ``manifest.json``, are not looked at.

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
    found: dict[Place, tuple[Path, DomainData]] = {}
    for path in paths:
        data = read(path)
        place = _place(path, data)
        if place in found:
            raise ValueError(
                f"{found[place][0]} and {path} both hold out {place[0]!r} in trial {place[1]}; "
                "move one of them out of the folder"
            )
        found[place] = path, data
        _refuse_mixed(paths[0], found, path, data)
    name = folder.resolve().name
    return {place: replace(found[place][1], name=name) for place in sorted(found)}


def _refuse_mixed(
    first: Path, found: dict[Place, tuple[Path, DomainData]], path: Path, data: DomainData
) -> None:
    """Refuse features of other rows, or of another network, than those of the first store."""
    before = next(iter(found.values()))[1]
    for what in ("examples", "backbone", "weights"):
        one, other = (dict(table.made or {}).get(what) for table in (before, data))
        if one != other:
            raise ValueError(
                f"{first} and {path} are of different runs: {what} {one} and {other}; keep one "
                "folder for each"
            )


def _place(path: Path, data: DomainData) -> Place:
    """The domain that was held out when the features were made, and the trial."""
    made = data.made or {}
    held_out, trial = made.get("held_out"), made.get("trial")
    absent = [k for k in ("held_out", "trial") if made.get(k) is None]
    if absent:
        raise ValueError(
            f"{path} does not say in which trial and without which domain it was made (it lacks "
            f"made.{' and made.'.join(absent)}); pretrained features are given by themselves"
        )
    if isinstance(trial, bool) or not isinstance(trial, int) or trial < 0:
        raise ValueError(f"{path} has trial {trial!r}; it must be a whole number of 0 or more")
    return str(held_out), trial
