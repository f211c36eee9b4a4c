"""A run: networks and features of one collection of images or texts, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from skdare.data.store import MANIFEST, Store
from skdare.errors import InputError
from skdare.features.backbones.backbone import Backbone, weights_hash
from skdare.features.backbones.by_name import backbone, recorded_name
from skdare.features.device import pick_device
from skdare.features.examples.examples import Examples
from skdare.features.examples.layout import Layout
from skdare.features.examples.listing import RUN_SETTINGS
from skdare.features.examples.source import ExampleSource
from skdare.features.extractor import Extractor
from skdare.features.json_file import check_shape
from skdare.features.norm_statistics import NETWORK, PASSES, check_norm_stats
from skdare.features.training.folder import TrainingFolder, TrainingRecord
from skdare.features.training.recipe import Job, Recipe, jobs
from skdare.features.training.trainer import AT_ONCE, Trainer
from skdare.features.training.workload import Workload, workload
from skdare.progress import reached

FEATURES = "features"
PRETRAINED = "pretrained"
_SOURCE_SHAPE = {"path": str, "backbone": str, "options": dict}


def counting(what: str, total: int) -> Callable[[int], None]:
    """A function to be called with each amount that is done; it records progress."""
    done = 0

    def count(amount: int) -> None:
        nonlocal done
        done += amount
        reached(what, min(done, total), total)

    reached(what, 0, total)
    return count


@dataclass(frozen=True, eq=False)
class Inputs:
    """A backbone, and examples that are decoded for it."""

    backbone: Backbone
    examples: Examples


@dataclass(frozen=True, eq=False)
class Run:
    """Networks and features of one collection, in one folder.

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
    dtype : "float32" or "float16"
        Of stored features.
    norm_stats : "network" or "domain"
        Statistics of batch norms behind stored features.
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
    dtype: str = "float32"
    norm_stats: str = NETWORK

    @classmethod
    def open(cls, folder: Path, **more: Any) -> Run:
        """The run that was begun in a folder, to extract its features."""
        settings = TrainingFolder(folder).settings()
        try:
            check_shape(settings, {"source": _SOURCE_SHAPE})
        except ValueError as error:
            raise InputError(
                f"{folder} does not say where its examples are: {RUN_SETTINGS} {error}",
                "train it with `skdare train`",
            ) from error
        source = settings["source"]
        layout = None if source.get("layout") is None else Layout.of(source["layout"])
        recipe = Recipe(precision=settings["recipe"]["precision"])
        place = ExampleSource(source["path"], layout)
        return cls(folder, place, source["backbone"], recipe, source["options"], **more)

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
        examples = self.source.examples(
            network, lambda done, total: reached("decoding images", done, total)
        )
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
            raise InputError(f"{self.folder} is a file", "name a folder for the run")

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

    def check_images(self) -> None:
        """Refuse, before any work, a known set that is not as expected, and damaged images."""
        rows = sum(self.source.counts().values())
        self.source.check(counting("checking images", rows))

    def workload(self) -> Workload:
        """What is left to do."""
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
            states=AT_ONCE[pick_device(self.device).type],
            norm_stats=self.norm_stats,
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
            folder.begin({}, source)  # where examples are now
            return done  # perhaps on a GPU, with a precision that a trainer here would refuse
        trainer = Trainer(
            self.inputs.examples,
            self.inputs.backbone,
            self.recipe,
            self.folder,
            device=self.device,
            source=source,
        )
        rows = trainer.remaining(self.planned)
        return trainer(self.planned, progress=counting("training on rows", rows))

    def _check_examples(self) -> None:
        """Refuse examples of another run."""
        examples = self.inputs.examples
        if self._begun_with.get("examples", examples.fingerprint) != examples.fingerprint:
            raise InputError(
                f"{self.folder} was begun with other images or texts, or with another size",
                "give the same, or another folder",
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
        if not all(finished):
            if not self.source.is_embedded and not Path(self.source.path).exists():
                raise InputError(
                    f"'{self.source.path}', which '{self.folder}' was trained on, is not there",
                    f"if it was moved, run `skdare train` on it with --out {self.folder}",
                )
            extractor = self._extractor(len(networks))
            extractor.fine_tuned(self.folder, self.folder / FEATURES)
            extractor.pretrained(self.folder / PRETRAINED)
        return list(networks)

    def extract_pretrained(self) -> Path:
        """Write one store, of the backbone before fine-tuning: the folder itself."""
        self.check()
        self.is_finished(self.folder)
        return self._extractor(1).pretrained(self.folder)

    def _extractor(self, stores: int) -> Extractor:
        total = stores * PASSES[self.norm_stats] * len(self.inputs.examples.labels)
        return Extractor(
            self.inputs.examples,
            self.inputs.backbone,
            device=self.device,
            precision=self.recipe.precision,
            dtype=self.dtype,
            norm_stats=self.norm_stats,
            progress=counting("extracting rows", total),
        )

    def is_finished(self, path: Path, network: str | None = None) -> bool:
        """Whether a store has all features of a network; others are refused."""
        if not (path / MANIFEST).exists():
            return False
        store = Store.open(path, unfinished=True)
        stored = {
            "dtype": store.dtype,
            "precision": store.made.get("precision"),
            "norm_stats": store.made.get("norm_stats"),
        }
        wanted = {
            "dtype": self.dtype,
            "precision": self.recipe.precision,
            "norm_stats": self.norm_stats,
        }
        for name, value in wanted.items():
            if value not in ("auto", stored[name]):
                raise InputError(
                    f"'{path}' has features of {name} {stored[name]}, not {value}",
                    f"choose {name}='{stored[name]}', or remove it",
                )
        return store.finished and store.made.get("network") == network
