"""The whole paper in one go: train networks, extract features, run the bench on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.bench import Given, Plan, Settings, bench_plan
from skdare.datasets import DomainData, read, read_fine_tuned, store_info
from skdare.datasets._manifest import MANIFEST

if TYPE_CHECKING:
    from skdare.features import Backbone, Examples, Job, Recipe, Source, TrainingRecord

SETTINGS, FEATURES, PRETRAINED, BENCH = "run.json", "features", "pretrained", "bench"


def _silent(what: str, unit: str, total: int) -> AbstractContextManager[Any]:
    return nullcontext(lambda done: None)


@dataclass(frozen=True)
class Watcher:
    """What a run tells while it goes on: sentences, and amounts of work; nothing by default.

    Parameters
    ----------
    say : callable of one str, optional
        Without it, what should be heeded is a warning.
    meter : callable of (what, unit, total)
        Gives a context manager, whose value is called with amounts as they are done.
    """

    say: Callable[[str], None] | None = None
    meter: Callable[[str, str, int], AbstractContextManager[Any]] = _silent


@dataclass(frozen=True, eq=False)
class Inputs:
    """What networks are made of, and what they are trained on."""

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
    source : Source
    backbone : str
        A name that `skdare.features.backbone` knows.
    recipe : Recipe
    options : dict
        Of the backbone.
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
    watcher : Watcher
    """

    folder: Path
    source: Source
    backbone: str
    recipe: Recipe
    options: Mapping[str, Any] = field(default_factory=dict)
    trials: int = 3
    held_out: Sequence[str] | None = None
    ceilings: bool = True
    device: str = "auto"
    at_once: int | None = None
    dtype: str = "float32"
    watcher: Watcher = field(default_factory=Watcher)

    @cached_property
    def inputs(self) -> Inputs:
        """The backbone and the decoded examples, made when they are first asked for."""
        from skdare.features import backbone

        found = backbone(self.backbone, **self.options)
        with self.watcher.meter("decoding", "images", 1) as meter:
            reached = getattr(meter, "reached", None)
            examples = self.source.examples(found, self.watcher.say, reached)
        # A run goes on under its own name, though its images were moved to a folder of another.
        return Inputs(found, replace(examples, name=self.begun.get("data", examples.name)))

    @property
    def begun(self) -> dict[str, Any]:
        """The settings of the run, where it was begun."""
        from skdare.features import TrainingFolder

        there = (self.folder / SETTINGS).exists()
        return TrainingFolder(self.folder).settings() if there else {}

    @cached_property
    def planned(self) -> list[Job]:
        """The networks of the run."""
        from skdare.features import jobs

        return jobs(
            self.source.domains(),
            self.recipe,
            trials=self.trials,
            held_out=self.held_out,
            ceilings=self.ceilings,
        )

    def check(self) -> None:
        """Refuse, before any work, a device or a folder that cannot be."""
        from skdare.features import pick_device

        pick_device(self.device)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; name a folder for the run")

    def train(self) -> list[TrainingRecord]:
        """Train what is not trained yet; return the records of all planned networks."""
        from skdare.features import Trainer, TrainingFolder

        self.check()
        folder, source, begun = TrainingFolder(self.folder), self._described(), self.begun
        if begun:
            folder.refuse_other({"backbone": self.backbone, "recipe": self.recipe.deciding()})
        done = [record for job in self.planned if (record := folder.record(job)) is not None]
        # Examples that lie elsewhere, or are read otherwise, have to be looked at first.
        if len(done) == len(self.planned) and begun.get("source") == source:
            return done
        self._check_examples()
        if len(done) == len(self.planned):
            return done  # elsewhere, perhaps on a GPU, which a trainer here would not agree with
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
            trainer.progress, trainer.say = meter, self.watcher.say
            return trainer(self.planned)

    def _described(self) -> dict[str, Any]:
        """Where examples and backbone come from, so that they can be found again."""
        written = {"backbone": self.backbone, "options": dict(self.options)}
        return {**self.source.described(), **written}

    def _check_examples(self) -> None:
        """Refuse others than those of the run, and domains of which no image could be read."""
        examples = self.inputs.examples
        if self.begun.get("examples", examples.fingerprint) != examples.fingerprint:
            raise ValueError(
                f"{self.folder} was begun with other images or texts, or with another size; "
                "give the same, or another folder"
            )
        left = set(examples.domains.tolist())
        lost = [job.held_out for job in self.planned if job.held_out not in {None, *left}]
        if lost:
            raise ValueError(
                f"no image of the held-out domain `{lost[0]}` can be read; mend them, or hold out "
                f"others, of {', '.join(f'`{name}`' for name in sorted(left))}"
            )

    def extract(self) -> list[Path]:
        """Stores of every network that held a domain out, and of the backbone as it was."""
        from skdare.features import Extractor, TrainingFolder, selected

        self.check()
        records = TrainingFolder(self.folder).records()
        chosen = [record for record in selected(records) if record.held_out is not None]
        if not chosen:
            raise ValueError(
                f"{self.folder} has no finished network that held a domain out; train it"
            )
        stores: dict[Path, str | None] = {
            self.folder / FEATURES / record.job.place: record.network for record in chosen
        }
        stores[self.folder / PRETRAINED] = None
        whole = [self.is_whole(path, network) for path, network in stores.items()]
        if all(whole):
            return list(stores)
        total = len(stores) * len(self.inputs.examples.labels)
        with self.watcher.meter("extracting", "rows", total) as meter:
            extractor = Extractor(
                self.inputs.examples,
                self.inputs.backbone,
                device=self.device,
                precision=self.recipe.precision,
                dtype=self.dtype,
                progress=meter,
            )
            extractor.fine_tuned(self.folder, self.folder / FEATURES)
            extractor.pretrained(self.folder / PRETRAINED)
        return list(stores)

    def is_whole(self, store: Path, network: str | None = None) -> bool:
        """Whether a store has all features of a network; one of another kind is refused."""
        if not (store / MANIFEST).exists():
            return False
        found = store_info(store)
        made = dict(found.made or {})
        kept = {"dtype": found.dtype, "precision": made.get("precision")}
        asked = {"dtype": self.dtype, "precision": self.recipe.precision}
        for name, value in asked.items():
            if value not in ("auto", kept[name]):
                raise ValueError(
                    f"{store} has features of {name} {kept[name]}, and {value} is asked for; "
                    "ask for the same, or remove it"
                )
        return found.finished and made.get("network") == network

    @cached_property
    def tables(self) -> Tables:
        """The features of this run, read once."""
        places = {(job.held_out, job.trial) for job in self.planned}
        found = read_fine_tuned(self.folder / FEATURES).items()
        fine_tuned = {place: table for place, table in found if place in places}
        return Tables(fine_tuned, read(self.folder / PRETRAINED))

    def plan(self, settings: Settings, **asked: Any) -> Plan:
        """The bench on the stores of this run, beside the scores of the networks themselves."""
        places = self.tables.fine_tuned
        networks, end_to_end = network_scores(self.folder)
        return bench_plan(
            places,
            pretrained=self.tables.pretrained,
            settings=settings,
            networks={place: score for place, score in networks.items() if place in places},
            end_to_end={place: score for place, score in end_to_end.items() if place in places},
            **asked,
        )


Scores = dict[tuple[str, int], Given]


def network_scores(folder: str | Path) -> tuple[Scores, Scores]:
    """Of the chosen networks of a run, on rows set aside of each domain, by domain and trial.

    First of those that held the domain out, then of those that were trained on all.
    """
    from skdare.features import TrainingFolder, ceiling_scores, selected

    records = TrainingFolder(folder).records()
    networks = {
        (record.held_out, record.trial): Given(record.accuracy["reserved"], "reserved")
        for record in selected(records)
        if record.held_out is not None
    }
    ceilings = ceiling_scores(records).items()
    return networks, {place: Given(score, "reserved") for place, score in ceilings}
