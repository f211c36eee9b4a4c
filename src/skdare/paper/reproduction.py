"""A study from its file: its networks and features, its heads, and what is to be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from skdare.bench.record import RecordFile
from skdare.errors import InputError, listed, note, unknown
from skdare.features import Augmentation, Hyperparameters, Recipe
from skdare.features.examples.source import DIGITS, ExampleSource
from skdare.features.run import FEATURES, PRETRAINED, Run
from skdare.features.training.folder import TrainingFolder, best_draws, ceiling_scores
from skdare.features.training.recipe import BATCH_EXPONENTS, Job
from skdare.paper.experiment import Experiment, Place, network_records
from skdare.paper.fold import FeatureTable
from skdare.paper.plan import ABLATIONS, Trial, ablation_trials, study_trials
from skdare.paper.protocol import Settings
from skdare.paper.report import Study
from skdare.paper.study_file import StudyFile

BENCH = "bench"


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Networks, features and heads of a study, in one folder.

    Parameters
    ----------
    study : StudyFile
    run : Run
    ablations : sequence of str
    """

    study: StudyFile
    run: Run
    ablations: Sequence[str]

    @classmethod
    def of(
        cls,
        study: StudyFile,
        *,
        source: Path | None = None,
        out: Path | None = None,
        trials: int | None = None,
        held_out: Sequence[str] = (),
        ablations: Sequence[str] = (),
        quick: bool = False,
        device: str = "auto",
    ) -> Reproduction:
        """The run that a study describes, checked as far as that needs no images."""
        settings = study.settings
        ablations = list(ablations) or settings.get("ablations", "").split(",")
        ablations = [name for name in dict.fromkeys(ablations) if name not in ("", "none")]
        for name in ablations:
            if name not in ABLATIONS:
                raise unknown("ablation", name, ABLATIONS)
        place = source or settings.get("source") or (DIGITS if study.name == DIGITS else None)
        if place is None:
            domains = "" if study.layout is None else f" of {listed(study.layout.domains)}"
            raise InputError(
                f"there is no source for {study.name}", f"give --source, the folder{domains}"
            )
        if trials is None:
            trials = 1 if quick else settings.get("trials", 3)
        folder = out or Path(f"{study.name}{'-quick' * quick}.run")
        run = Run(
            folder,
            ExampleSource(str(place), study.layout),
            settings.get("backbone", "timm:tf_efficientnet_lite0"),
            _recipe(settings, quick=quick),
            {"size": settings["size"]} if "size" in settings else {},
            trials=trials,
            held_out=list(dict.fromkeys(held_out)) or None,
            device=device,
            dtype=settings.get("dtype", "float32"),
        )
        run.check()
        run.check_settings()
        return cls(study, run, ablations)

    def check(self) -> None:
        """Refuse, before any work, networks and images that cannot be used, and too little room."""
        self.run.check_backbone()
        self.run.check_images()
        self.run.workload().check_room(self.run.folder)
        self._note_figures_alone()

    def _note_figures_alone(self) -> None:
        """Say if published figures will be compared with nothing."""
        published = self.study.published
        if published is None:
            return
        held_out = self.run.held_out or list(self.run.source.counts())
        if not set(held_out) & set(published.domains):
            note("published figures will not be shown: they are of other held-out domains")

    @cached_property
    def records(self) -> RecordFile:
        """Where records of heads go."""
        return RecordFile(self.run.folder / BENCH)

    @property
    def places(self) -> list[Place]:
        """Held-out domains and trials."""
        return list(
            dict.fromkeys((j.held_out, j.trial) for j in self.run.planned if j.held_out is not None)
        )

    def open_table(self, place: Place | None) -> FeatureTable:
        """Features of the network that held a domain out; of the one before fine-tuning."""
        if place is None:
            return FeatureTable.open(self.run.folder / PRETRAINED)
        return FeatureTable.open(self.run.folder / FEATURES / Job(*place).place)

    @property
    def planned(self) -> list[Trial]:
        """All heads, ceilings, diagnostics and ablations."""
        domains = list(self.run.source.counts())
        trials: list[Trial] = []
        for held_out, number in self.places:
            others = [domain for domain in domains if domain != held_out]
            trials += study_trials(held_out, number)
            for name in self.ablations:
                dim = self.run.pretrained.dim
                trials += ablation_trials(name, held_out, number, others, dim)
        return trials

    def bench(self) -> Study:
        """Run what is not done, and read what was found."""
        settings = self.study.settings
        experiment = Experiment(
            self.study.name,
            self.open_table,
            Settings(shrinkage=settings.get("shrinkage", Settings.shrinkage)),
            self.run.recipe.aside,
        )
        experiment.run(self.planned, self.records)
        self._record_networks()
        if self.study.published is not None:
            self.study.published.keep(self.records.folder)
        return Study.read(self.records.folder)

    def _record_networks(self) -> None:
        """Write the scores of the networks themselves, too."""
        records = TrainingFolder(self.run.folder).records()
        best = [record for record in best_draws(records) if record.held_out is not None]
        networks = {(str(r.held_out), r.trial): r.accuracy["reserved"] for r in best}
        with self.records.open({"data": self.study.name}) as done:
            for record in network_records(self.study.name, networks, ceiling_scores(records)):
                if record.key not in done and (record.held_out, record.trial) in self.places:
                    self.records.append(record)


def _recipe(settings: Mapping[str, Any], *, quick: bool) -> Recipe:
    steps = settings.get("steps", 5001)
    check_every = settings.get("check-every", 300)
    if quick:
        steps = max(1, steps // 2)
        check_every = min(check_every, steps)
    return Recipe(
        steps=steps,
        check_every=check_every,
        draws=settings.get("draws", 1),
        augmentation=Augmentation(flip=0.5 if settings.get("flip", True) else 0.0),
        hyperparameters=Hyperparameters(lr=settings.get("lr", Hyperparameters.lr)),
        batch_exponents=tuple(settings.get("batch-exponents", BATCH_EXPONENTS)),
    )
