"""The whole paper: train networks, extract features, and plan the bench on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from skdare.bench import NetworkScore, Plan, Settings, ablation_plan, bench_plan
from skdare.datasets import DomainData, read, read_fine_tuned, store_info
from skdare.datasets._manifest import MANIFEST
from skdare.features import Examples, Extractor, Recipe, Trainer, backbone, jobs
from skdare.features.backbones.backbone import Backbone, weights_hash
from skdare.features.backbones.by_name import recorded_name
from skdare.features.device import pick_device
from skdare.features.examples.listing import RUN_SETTINGS
from skdare.features.examples.source import ExampleSource
from skdare.features.norm_statistics import NETWORK, PASSES, check_norm_stats
from skdare.features.training.folder import (
    TrainingFolder,
    TrainingRecord,
    best_draws,
    ceiling_scores,
)
from skdare.features.training.recipe import Job
from skdare.features.training.trainer import AT_ONCE
from skdare.features.training.workload import Workload, workload

FEATURES = "features"
PRETRAINED = "pretrained"
BENCH = "bench"

Scores = dict[tuple[str, int], NetworkScore]


def _no_meter(what: str, unit: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda count: None)


@dataclass(frozen=True)
class Watcher:
    """What is called while a run goes on; nothing by default.

    Parameters
    ----------
    say : callable of one str, optional
        Called with sentences. Without it, what needs attention is a warning.
    meter : callable of (what, unit, total)
        Returns a context manager, whose value is called with amounts as they are done.
    """

    say: Callable[[str], None] | None = None
    meter: Callable[[str, str, int], AbstractContextManager[Any]] = _no_meter


@dataclass(frozen=True, eq=False)
class Inputs:
    """A backbone, and examples that are decoded for it."""

    backbone: Backbone
    examples: Examples


@dataclass(frozen=True, eq=False)
class Tables:
    """Features by held-out domain and trial, and those before fine-tuning."""

    fine_tuned: Mapping[tuple[str, int], DomainData]
    pretrained: DomainData


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Networks, features and tables of one collection, in one folder.

    Whatever is finished there is not done again, so a run that was stopped at any moment goes on.

    Parameters
    ----------
    folder : path
    source : ExampleSource
    backbone : str
        A name that `skdare.features.backbone` knows.
    recipe : Recipe
    options : dict
        Options of the backbone.
    trials : int
    held_out : sequence of str, optional
        Default: every domain.
    ceilings : bool
        Whether to train on all domains too.
    device : str
    at_once : int, optional
        Networks in training at the same time.
    dtype : "float32", "float16" or "uint8"
        Of stored features.
    norm_stats : "network" or "domain"
        Statistics of batch norms behind stored features.
    watcher : Watcher
    """

    folder: Path
    source: ExampleSource
    backbone: str
    recipe: Recipe
    options: Mapping[str, Any] = field(default_factory=dict)
    trials: int = 3
    held_out: Sequence[str] | None = None
    ceilings: bool = True
    device: str = "auto"
    at_once: int | None = None
    dtype: str = "float32"
    norm_stats: str = NETWORK
    watcher: Watcher = field(default_factory=Watcher)

    @cached_property
    def pretrained(self) -> Backbone:
        """The backbone before fine-tuning, made when it is first needed."""
        return backbone(self.backbone, **self.options)

    @cached_property
    def inputs(self) -> Inputs:
        """Backbone and decoded examples, made when they are first needed."""
        # Before hours of decoding and training.
        self.check_backbone()
        network = self.pretrained
        collection = self.source.collection
        total = 1 if collection is None else len(collection.ids)
        with self.watcher.meter("decoding", "images", total) as meter:
            before = 0

            def progress(done: int, total: int) -> None:
                nonlocal before
                meter(done - before)
                before = done

            examples = self.source.examples(network, self.watcher.say, progress)
        # A run keeps its name, even where its images were moved to a folder of another name.
        name = self._begun_with.get("data", examples.name)
        return Inputs(network, replace(examples, name=name))

    @property
    def _begun_with(self) -> dict[str, Any]:
        """Settings with which the run was begun; empty for a new one."""
        exists = (self.folder / RUN_SETTINGS).exists()
        return TrainingFolder(self.folder).settings() if exists else {}

    @cached_property
    def planned(self) -> list[Job]:
        """Networks of the run."""
        return jobs(
            list(self.source.counts()),
            self.recipe,
            trials=self.trials,
            held_out=self.held_out,
            ceilings=self.ceilings,
        )

    def check(self) -> None:
        """Refuse, before any work, a device or a folder that cannot be used."""
        pick_device(self.device)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; name a folder for the run")

    def check_settings(self) -> None:
        """Refuse, before any work, other settings than those with which the run was begun."""
        begun_with = self._begun_with
        if not begun_with:
            return
        TrainingFolder(self.folder).check_settings(
            {
                "backbone": recorded_name(self.backbone),
                "bottleneck": self.options.get("bottleneck"),
                "recipe": self.recipe.settings(),
            }
        )
        # Folders of one name may hold different networks.
        source = begun_with.get("source")
        if not isinstance(source, dict) or source.get("backbone") != self.backbone:
            self._check_weights()

    def _check_weights(self) -> None:
        """Refuse another network than that with which the run was begun."""
        weights = {"weights": weights_hash(self.pretrained.module)}
        TrainingFolder(self.folder).check_settings(weights)

    def waiting(self) -> list[Job]:
        """Networks that are not trained yet."""
        folder = TrainingFolder(self.folder)
        return [job for job in self.planned if folder.record(job) is None]

    def check_backbone(self) -> None:
        """Refuse, before any work, a backbone that cannot be made, or not with these statistics."""
        check_norm_stats(self.norm_stats, self.pretrained, self.source.rows.domains)
        if self._begun_with:
            self._check_weights()  # a folder may hold another network by now

    def check_images(self, *, as_found: bool = False) -> None:
        """Refuse, before any work, a known set that is not as expected, and damaged images."""
        rows = sum(self.source.counts().values())
        with self.watcher.meter("checking", "images", rows) as meter:
            self.source.check(as_found=as_found, progress=meter)

    def workload(self, rate: float | None = None) -> Workload:
        """What is left to do; ``rate`` is in images a second, by default as measured."""
        stores = {job.place for job in self.planned if job.held_out is not None}
        paths = [self.folder / PRETRAINED, *(self.folder / FEATURES / name for name in stores)]
        return workload(
            self.waiting(),
            sum(not (path / MANIFEST).exists() for path in paths),
            self.recipe,
            self.source.counts(),
            self.pretrained,
            classes=len(self.source.classes()),
            dtype=self.dtype,
            states=self.at_once or AT_ONCE[pick_device(self.device).type],
            norm_stats=self.norm_stats,
            rate=rate,
        )

    def train(self) -> list[TrainingRecord]:
        """Train the networks that are not done yet; return the records of all planned ones."""
        self.check()
        self.check_settings()
        folder = TrainingFolder(self.folder)
        # Where examples and backbone come from, so that they can be found again.
        options = {"backbone": self.backbone, "options": dict(self.options)}
        source = {**self.source.settings(), **options}
        begun_with = self._begun_with
        done = [record for job in self.planned if (record := folder.record(job)) is not None]
        # Examples from another place, or read in another way, have to be checked first.
        if len(done) == len(self.planned) and begun_with.get("source") == source:
            return done
        self._check_examples()
        if len(done) == len(self.planned):
            return done  # perhaps on a GPU, with a precision that a trainer here would refuse
        trainer = Trainer(
            self.inputs.examples,
            self.inputs.backbone,
            self.recipe,
            self.folder,
            device=self.device,
            at_once=self.at_once,
            source=source,
        )
        if done and self.watcher.say is not None:
            self.watcher.say(f"{len(done)} of {len(self.planned)} networks are trained already")
        with self.watcher.meter("training", "images", trainer.remaining(self.planned)) as meter:
            return trainer(self.planned, progress=meter, say=self.watcher.say)

    def _check_examples(self) -> None:
        """Refuse examples of another run, and held-out domains without a readable image."""
        examples = self.inputs.examples
        if self._begun_with.get("examples", examples.fingerprint) != examples.fingerprint:
            raise ValueError(
                f"{self.folder} was begun with other images or texts, or with another size; "
                "give the same, or another folder"
            )
        domains = set(examples.domains.tolist())
        lost = [job.held_out for job in self.planned if job.held_out not in {None, *domains}]
        if lost:
            raise ValueError(
                f"no image of the held-out domain `{lost[0]}` can be read; repair them, or hold "
                f"out others: {', '.join(f'`{name}`' for name in sorted(domains))}"
            )

    def extract(self) -> list[Path]:
        """Write stores of every network that held a domain out, and of the untrained backbone."""
        self.check()
        networks: dict[Path, str | None] = {
            self.folder / FEATURES / record.job.place: record.network
            for record in TrainingFolder(self.folder).chosen()
        }
        networks[self.folder / PRETRAINED] = None
        finished = [self.is_finished(store, network) for store, network in networks.items()]
        if all(finished):
            return list(networks)
        total = len(networks) * PASSES[self.norm_stats] * len(self.inputs.examples.labels)
        with self.watcher.meter("extracting", "rows", total) as meter:
            extractor = Extractor(
                self.inputs.examples,
                self.inputs.backbone,
                device=self.device,
                precision=self.recipe.precision,
                dtype=self.dtype,
                norm_stats=self.norm_stats,
                progress=meter,
            )
            extractor.fine_tuned(self.folder, self.folder / FEATURES)
            extractor.pretrained(self.folder / PRETRAINED)
        return list(networks)

    def is_finished(self, store: Path, network: str | None = None) -> bool:
        """Whether a store has all features of a network; others are refused."""
        if not (store / MANIFEST).exists():
            return False
        info = store_info(store)
        made = dict(info.made or {})
        stored = {
            "dtype": info.dtype,
            "precision": made.get("precision"),
            "norm_stats": made.get("norm_stats", NETWORK),
        }
        wanted = {
            "dtype": self.dtype,
            "precision": self.recipe.precision,
            "norm_stats": self.norm_stats,
        }
        for name, value in wanted.items():
            if value not in ("auto", stored[name]):
                raise ValueError(
                    f"{store} has features of {name} {stored[name]}, not {value}; "
                    f"choose {name}='{stored[name]}', or remove it"
                )
        return info.finished and made.get("network") == network

    @cached_property
    def tables(self) -> Tables:
        """Features of this run, read once."""
        planned = {(job.held_out, job.trial) for job in self.planned}
        tables = read_fine_tuned(self.folder / FEATURES)
        fine_tuned = {place: table for place, table in tables.items() if place in planned}
        return Tables(fine_tuned, read(self.folder / PRETRAINED))

    def plan(self, settings: Settings, **options: Any) -> Plan:
        """Plan the bench on the stores of this run, beside the scores of the networks themselves.

        Other options are those of `skdare.bench.bench_plan`.
        """
        tables = self.tables.fine_tuned
        networks, end_to_end = network_scores(self.folder)
        return bench_plan(
            tables,
            pretrained=self.tables.pretrained,
            settings=settings,
            networks={place: score for place, score in networks.items() if place in tables},
            end_to_end={place: score for place, score in end_to_end.items() if place in tables},
            **options,
        )

    def ablation(self, ablation: str, settings: Settings, **options: Any) -> Plan:
        """Plan an ablation on the stores of this run.

        Other options are those of `skdare.bench.ablation_plan`.
        """
        return ablation_plan(
            ablation,
            self.tables.fine_tuned,
            pretrained=self.tables.pretrained,
            settings=settings,
            **options,
        )


def network_scores(folder: str | Path) -> tuple[Scores, Scores]:
    """Scores of a run's networks on rows set aside, by (domain, trial).

    First those of networks that held the domain out, then those of networks trained on all.
    """
    records = TrainingFolder(folder).records()
    networks = {
        (record.held_out, record.trial): NetworkScore(record.accuracy["reserved"], "reserved")
        for record in best_draws(records)
        if record.held_out is not None
    }
    ceilings = ceiling_scores(records).items()
    return networks, {place: NetworkScore(score, "reserved") for place, score in ceilings}
