"""From a network to a feature store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skdare.data.store import MANIFEST, Store, StoreWriter
from skdare.errors import InputError
from skdare.features.backbones.backbone import Backbone, provenance
from skdare.features.device import pick_device, pick_precision, torch_tuned_for
from skdare.features.examples.examples import Examples
from skdare.features.inputs import place_inputs
from skdare.features.network import Network
from skdare.features.norm_statistics import (
    NETWORK,
    PASSES,
    check_norm_stats,
    norm_statistics,
    spread_batches,
)
from skdare.features.reader import Reader
from skdare.features.split import ASIDE
from skdare.features.training.folder import TrainingFolder, TrainingRecord
from skdare.features.training.sampler import RowSplit

# Rows that a killed extraction may lose: few where they are slow to make. On a GPU as many as a
# store would hold at once, so that most stores are one shard, which is read without being loaded.
_ROWS_PER_SHARD = {"cpu": 2048, "cuda": None}
# Chunks of a reader whose rows are sorted by domain, where each domain has statistics of its own.
_CHUNKS_AT_ONCE = 8


class Extractor:
    """Writes features of examples, by networks of one architecture.

    Parameters
    ----------
    examples : Examples
    backbone : Backbone
        With its weights before fine-tuning.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
    precision : "auto", "float32" or "bfloat16"
        Of products inside the backbone; "auto" is bfloat16 on a GPU.
    dtype : "float32" or "float16"
        Of the stored features.
    norm_stats : "network" or "domain"
        Means and variances by which batch norms normalise a row: the network's own, or those of
        all rows of its domain, measured without labels in a pass of their own. A domain's features
        do not depend on the other domains, so a new one may come alone.
    progress : callable, optional
        Called with the number of rows that were just read; with ``norm_stats="domain"`` every row
        is read twice.
    """

    def __init__(
        self,
        examples: Examples,
        backbone: Backbone,
        *,
        device: str = "auto",
        precision: str = "auto",
        dtype: str = "float32",
        norm_stats: str = NETWORK,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.examples = examples
        self.backbone = backbone
        self.dtype = dtype
        check_norm_stats(norm_stats, backbone, examples.domains)
        self.norm_stats = norm_stats
        self.progress = progress or (lambda rows: None)
        self.device = pick_device(device)
        self.precision = pick_precision(precision, self.device)
        self._provenance: dict[str, Any] = dict(provenance(backbone, examples))
        self._reader: Reader | None = None

    def pretrained(self, path: str | Path) -> Path:
        """Write features of the backbone before fine-tuning; a finished store is left alone."""
        return self._write(Path(path), self._source())

    def fine_tuned(self, run: str | Path, out: str | Path) -> list[Path]:
        """Write a store for every network of a run that held a domain out.

        Of several draws of hyperparameters the best is taken. Finished stores are left alone, and
        unfinished ones are finished.
        """
        folder = TrainingFolder(run)
        settings = folder.settings()
        for name in ("examples", "weights"):
            if settings[name] != self._provenance[name]:
                raise InputError(
                    f"{run} was trained with other {name}; give the data and backbone of its run"
                )
        stores = []
        for record in folder.chosen():
            split = RowSplit.of(self.examples, record.job, settings["recipe"]["aside"])
            path = Path(out) / record.job.place
            weights = partial(folder.weights, record.job)
            stores.append(self._write(path, self._source(record), weights, split.aside))
        return stores

    def _write(
        self,
        path: Path,
        source: dict[str, Any],
        weights: Callable[[], Mapping[str, torch.Tensor]] | None = None,
        aside: np.ndarray | None = None,
    ) -> Path:
        """Write the features by these weights, or by the backbone's own."""
        examples = self.examples
        if _is_finished(path, source):
            self.progress(PASSES[self.norm_stats] * len(examples.labels))
            return path
        reader = self._reader_with({} if weights is None else weights())
        path.parent.mkdir(parents=True, exist_ok=True)
        with StoreWriter(
            path,
            [f"x{j}" for j in range(self.backbone.dim)],
            dtype=self.dtype,
            made=source,
            rows_per_shard=_ROWS_PER_SHARD[self.device.type],
        ) as writer:
            names = np.array(examples.classes)
            start = writer.rows
            self.progress(start)
            for features in self._features(reader, start):
                if not np.all(np.isfinite(features)):
                    raise InputError(f"features of {path} are not finite", "train with a lower lr")
                rows = slice(start, start + len(features))
                columns = {"y": names[examples.labels[rows]], "domains": examples.domains[rows]}
                columns["id"] = examples.ids[rows]
                if aside is not None:
                    columns[ASIDE] = aside[rows].astype(np.int8)
                writer.append(features, **columns)
                start = rows.stop
                self.progress(len(features))
        return path

    def _features(self, reader: Reader, start: int) -> Iterator[np.ndarray]:
        """Features of all rows from ``start`` on, some at a time."""
        rows = np.arange(start, len(self.examples.labels))
        with torch_tuned_for(self.device, self.backbone.module):
            if self.norm_stats == NETWORK:
                for outputs in reader(rows):
                    yield outputs.features
            else:
                yield from self._features_by_domain(reader, rows)

    def _features_by_domain(self, reader: Reader, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Features of these rows in their order, each with the statistics of its domain."""
        domains = self.examples.domains
        weights = reader.network.state_dict()
        statistics = self._domain_statistics(reader, np.unique(domains[rows]))
        step = _CHUNKS_AT_ONCE * reader.chunk
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            features = np.empty((len(block), self.backbone.dim), np.float32)
            for domain in np.unique(domains[block]):
                reader.load({**weights, **statistics[domain]})
                own = domains[block] == domain
                features[own] = np.concatenate([out.features for out in reader(block[own])])
            yield features

    def _domain_statistics(
        self, reader: Reader, domains: np.ndarray
    ) -> dict[str, dict[str, torch.Tensor]]:
        """Statistics of batch norms on all rows of each of these domains."""
        network = Network(self.backbone, len(self.examples.classes), fold=False)
        network.placed(self.device).load_state_dict(reader.network.state_dict())
        statistics = {}
        for domain in domains:
            rows = np.flatnonzero(self.examples.domains == domain)
            statistics[domain] = norm_statistics(network, self._views(reader, rows), self.precision)
        self.progress(int(np.count_nonzero(~np.isin(self.examples.domains, domains))))
        return statistics

    def _views(self, reader: Reader, rows: np.ndarray) -> Iterator[torch.Tensor]:
        """What the backbone takes for these rows, in batches to measure statistics on."""
        inputs = reader.inputs
        for batch in spread_batches(rows, inputs.capacity):
            places = torch.zeros(len(batch), dtype=torch.int64, device=self.device)
            inputs.stage(batch, places)
            yield self.backbone.views(inputs.inputs, places)
            self.progress(len(batch))

    def _reader_with(self, weights: Mapping[str, torch.Tensor]) -> Reader:
        """Reader with these weights, or with the backbone's own."""
        if self._reader is None:
            network = Network(self.backbone, len(self.examples.classes)).placed(self.device)
            encoded = self.backbone.encode(self.examples)
            inputs = place_inputs(encoded, self.examples.labels, self.device)
            stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
            self._reader = Reader(network, inputs, self.precision, stream)
        module = self.backbone.module.state_dict()
        untrained = {f"module.{name}": value for name, value in module.items()}
        self._reader.load(weights or {**self._reader.network.state_dict(), **untrained})
        return self._reader

    def _source(self, record: TrainingRecord | None = None) -> dict[str, Any]:
        """How features were made, as the store's manifest says it."""
        source = {**self._provenance, "precision": str(self.precision).removeprefix("torch.")}
        source["norm_stats"] = self.norm_stats
        if record is None:
            return source
        return source | {
            "held_out": record.held_out,
            "trial": record.trial,
            "draw": record.draw,
            "hyperparameters": dict(record.hyperparameters),
            "rule": record.rule,
            "step": record.step,
            "network": record.network,
            "split": "by seed (trial, domain)",
        }


def _is_finished(path: Path, source: Mapping[str, Any]) -> bool:
    """Whether the store is complete; features that were made otherwise are refused."""
    if not (path / MANIFEST).exists():
        return False
    store = Store.open(path, unfinished=True)
    if store.finished and store.made != json.loads(json.dumps(source)):
        raise InputError(
            f"{path} has features made in another way; remove it, or choose another folder"
        )
    return store.finished
