"""From a network to a feature store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skdare._validation import InputError
from skdare.datasets import StoreWriter, store_info
from skdare.features._backbone import Backbone, provenance
from skdare.features._device import pick_device, pick_precision
from skdare.features._examples import Examples
from skdare.features._feed import feed
from skdare.features._network import Network
from skdare.features._program import working
from skdare.features._reader import Read, Reader
from skdare.features._rows import Rows
from skdare.features._training_folder import TrainingFolder, TrainingRecord, selected

# Rows that a killed extraction may lose: few where they are slow to make. On a GPU as many as a
# store would hold at once, so that most are one shard, which is read without being loaded.
_ROWS_PER_SHARD = {"cpu": 2048, "cuda": None}


class Extractor:
    """Writes features of examples, by networks of one architecture.

    Parameters
    ----------
    examples : Examples
    backbone : Backbone
        As it was before fine-tuning.
    device : str
    precision : "auto", "float32" or "bfloat16"
        Of products inside the backbone; "auto" is bfloat16 on a GPU.
    dtype : "float32", "float16" or "uint8"
        Of the stored features; "uint8": 8-bit codes between the least and the largest value.
    progress : callable, optional
        Called with the number of rows that were just read.
    """

    def __init__(
        self,
        examples: Examples,
        backbone: Backbone,
        *,
        device: str = "auto",
        precision: str = "auto",
        dtype: str = "float32",
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.examples, self.backbone, self.dtype = examples, backbone, dtype
        self.progress = progress or (lambda rows: None)
        self.device = pick_device(device)
        self.precision = pick_precision(precision, self.device)
        self._provenance = provenance(backbone, examples)
        self._reader: Reader | None = None

    def pretrained(self, path: str | Path) -> Path:
        """Features of the backbone as it is; a store that is there already is left alone."""
        return self._store(Path(path), None, None)

    def fine_tuned(self, run: str | Path, out: str | Path) -> list[Path]:
        """A store for every network of a run that held a domain out: the chosen draw of each.

        Stores that are there already are left alone, and unfinished ones are finished.
        """
        folder = TrainingFolder(run)
        settings = folder.settings()
        for name in ("examples", "weights"):
            if settings[name] != self._provenance[name]:
                raise ValueError(
                    f"{run} was trained with other {name}; give the data and backbone of its run"
                )
        chosen = [record for record in selected(folder.records()) if record.held_out is not None]
        if not chosen:
            raise ValueError(f"{run} has no finished network that held a domain out; train it")
        found = []
        for record in chosen:
            path = Path(out) / record.job.place
            aside = Rows.of(self.examples, record.job, settings["recipe"]["aside"]).aside
            found.append(self._store(path, aside, _Trained(folder, record)))
        return found

    def _store(
        self,
        path: Path,
        aside: np.ndarray | None,
        trained: _Trained | None,
    ) -> Path:
        made = self._made(trained)
        if _finished(path, made):
            self.progress(len(self.examples.labels))
            return path
        network = self._with({} if trained is None else trained.weights())
        path.parent.mkdir(parents=True, exist_ok=True)
        examples = self.examples
        with StoreWriter(
            path,
            features=self.backbone.dim,
            dtype=self.dtype,
            classes=examples.classes,
            domains=np.unique(examples.domains),
            made=made,
            rows_per_shard=_ROWS_PER_SHARD[self.device.type],
            resume=True,
        ) as writer:
            at, names = writer.rows, np.array(examples.classes)
            self.progress(at)
            for read in self._reading(network, at):
                if not np.all(np.isfinite(read.features)):
                    raise InputError(
                        f"features of {path} are not finite", "train with a lower lr", argument="lr"
                    )
                rows = slice(at, at + len(read.features))
                labels, domains = names[examples.labels[rows]], examples.domains[rows]
                split = None if aside is None else aside[rows]
                writer.append(read.features, labels, domains, split, examples.ids[rows])
                at = rows.stop
                self.progress(len(read.features))
        return path

    def _reading(self, reader: Reader, start: int) -> Iterator[Read]:
        with working(self.device, self.backbone.module):
            yield from reader(np.arange(start, len(self.examples.labels)))

    def _with(self, weights: Mapping[str, torch.Tensor]) -> Reader:
        """The network with these weights, or with the backbone's own."""
        if self._reader is None:
            network = Network(self.backbone, len(self.examples.classes)).placed(self.device)
            inputs = self.backbone.encode(self.examples)
            place = feed(inputs, self.examples.labels, self.device)
            stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
            self._reader = Reader(network, place, self.precision, stream)
        module = self.backbone.module.state_dict()
        untrained = {f"module.{name}": value for name, value in module.items()}
        self._reader.load(weights or {**self._reader.network.state_dict(), **untrained})
        return self._reader

    def _made(self, trained: _Trained | None) -> dict[str, Any]:
        made: dict[str, Any] = dict(self._provenance)
        made["precision"] = str(self.precision).removeprefix("torch.")
        if trained is None:
            return made
        record = trained.record
        return made | {
            "held_out": record.held_out,
            "trial": record.trial,
            "draw": record.draw,
            "hyperparameters": dict(record.hyperparameters),
            "rule": record.rule,
            "step": record.step,
            "network": record.network,
            "split": "by seed (trial, domain)",
        }


@dataclass(frozen=True)
class _Trained:
    """A network of a run."""

    folder: TrainingFolder
    record: TrainingRecord

    def weights(self) -> dict[str, torch.Tensor]:
        """The kept ones."""
        return self.folder.weights(self.record.job)


def _finished(path: Path, made: Mapping[str, Any]) -> bool:
    """Whether the store is there; one that was made otherwise is refused."""
    if not (path / "manifest.json").exists():
        return False
    found = store_info(path)
    if found.finished and dict(found.made or {}) != dict(made):
        raise ValueError(f"{path} has features made otherwise; remove it, or choose another folder")
    return found.finished
