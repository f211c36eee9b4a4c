"""The whole paper in one go: train networks, extract features, run the bench on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.bench import Given, Plan, Settings, bench_plan
from skdare.datasets import read, read_fine_tuned, store_info

if TYPE_CHECKING:
    from skdare.features import Backbone, Examples, Job, Recipe, Source, TrainingRecord

FEATURES, PRETRAINED, BENCH = "features", "pretrained", "bench"


def _silent(what: str, unit: str, total: int) -> AbstractContextManager:
    return nullcontext(lambda done: None)


@dataclass(frozen=True)
class Watcher:
    """What a run tells while it goes on: sentences, and amounts of work; nothing by default.

    Parameters
    ----------
    say : callable of one str
    meter : callable of (what, unit, total)
        Gives a context manager, whose value is called with amounts as they are done.
    """

    say: Callable[[str], None] = lambda text: None
    meter: Callable[[str, str, int], AbstractContextManager] = _silent


@dataclass(frozen=True, eq=False)
class Inputs:
    """What networks are made of, and what they are trained on."""

    backbone: Backbone
    examples: Examples


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
            return Inputs(found, self.source.examples(found, self.watcher.say, reached))

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

    def train(self) -> list[TrainingRecord]:
        """Train what is not trained yet; return the records of all planned networks."""
        from skdare.features import Trainer, TrainingFolder

        records = [TrainingFolder(self.folder).record(job) for job in self.planned]
        done = [record for record in records if record is not None]
        if len(done) == len(self.planned):
            return done
        written = {"backbone": self.backbone, "options": dict(self.options)}
        trainer = Trainer(
            self.inputs.examples,
            self.inputs.backbone,
            self.recipe,
            self.folder,
            device=self.device,
            at_once=self.at_once,
            source={**self.source.described(), **written},
        )
        with self.watcher.meter("training", "images", trainer.remaining(self.planned)) as meter:
            trainer.progress = meter
            return trainer(self.planned)

    def extract(self) -> list[Path]:
        """Stores of every network that held a domain out, and of the backbone as it was."""
        from skdare.features import Extractor, TrainingFolder, selected, store_name

        records = TrainingFolder(self.folder).records()
        chosen = [record for record in selected(records) if record.held_out is not None]
        paths = [self.folder / FEATURES / store_name(record.job) for record in chosen]
        paths.append(self.folder / PRETRAINED)
        if chosen and all(map(_is_whole, paths)):
            return paths
        total = len(paths) * len(self.inputs.examples.labels)
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
        return paths

    def plan(self, settings: Settings, **asked: Any) -> Plan:
        """The bench on the stores, beside the scores of the networks themselves."""
        networks, end_to_end = network_scores(self.folder)
        return bench_plan(
            read_fine_tuned(self.folder / FEATURES),
            pretrained=read(self.folder / PRETRAINED),
            settings=settings,
            networks=networks,
            end_to_end=end_to_end,
            **asked,
        )


def _is_whole(store: Path) -> bool:
    return (store / "manifest.json").exists() and store_info(store).finished


Scores = dict[tuple[str, int], Given]


def network_scores(folder: str | Path) -> tuple[Scores, Scores]:
    """Of the chosen networks of a run, on rows set aside of each domain, by domain and trial.

    First of those that held the domain out, then of those that were trained on all.
    """
    from skdare.features import TrainingFolder, selected

    networks: Scores = {}
    end_to_end: Scores = {}
    for record in selected(TrainingFolder(folder).records()):
        if record.held_out is not None:
            reserved = Given(record.accuracy["reserved"], "reserved")
            networks[record.held_out, record.trial] = reserved
        for domain, score in record.ceilings.items():
            end_to_end[domain, record.trial] = Given(score, "reserved")
    return networks, end_to_end
