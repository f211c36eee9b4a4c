"""`skdare train`, `extract`, `reproduce` and `theory`: networks to features, and the paper."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from skdare.cli.answer import Answer, command, facts
from skdare.cli.outputs import writable
from skdare.cli.tables import Names
from skdare.errors import InputError, counted
from skdare.files import whole_file
from skdare.progress import tracked

if TYPE_CHECKING:
    from skdare.features.run import Run
    from skdare.features.training.folder import TrainingRecord
    from skdare.features.training.workload import Workload

Device = Literal["auto", "cpu", "cuda"]
_BACKBONE = "timm:tf_efficientnet_lite0"
_WIDEST = 132


def train(
    source: Path,
    /,
    *,
    out: Path | None = None,
    backbone: str = _BACKBONE,
    size: int | None = None,
    held_out: Names = (),
    trials: int = 3,
    steps: int = 5001,
    batch: int = 32,
    lr: float = 5e-5,
    weight_decay: float = 0.0,
    dropout: float = 0.0,
    draws: int = 1,
    device: Device = "auto",
) -> Answer:
    """Fine-tune a network for each held-out domain.

    The same command goes on where it was stopped.

    Parameters
    ----------
    source
        Folder or zip of domain/class/image, or a table with columns path or text, label and domain.
    out
        Folder of the run  [default: NAME.run]
    backbone
        timm:NAME, torchvision:NAME, or hf:FOLDER.
    size
        Side of images, or tokens of a text  [default: the network's]
    held_out
        Domains to hold out  [default: each]
    trials
        Splits, each with networks of its own.
    steps
        Steps of Adam.
    batch
        Rows of each domain in a batch.
    lr
        Learning rate.
    weight_decay
        Decay of all weights.
    dropout
        Dropout before the last layer.
    draws
        Choices of hyperparameters for each network: those given, and random ones.
    device
        Where to compute.
    """
    from skdare.features import Hyperparameters, Recipe
    from skdare.features.examples.source import ExampleSource
    from skdare.features.run import Run

    hyperparameters = Hyperparameters(lr, weight_decay, batch, dropout)
    run = Run(
        out or Path(f"{_stem(source)}.run"),
        ExampleSource(str(source)),
        _whole_name(backbone),
        Recipe(steps=steps, hyperparameters=hyperparameters, draws=draws),
        {} if size is None else {"size": size},
        trials=trials,
        held_out=list(dict.fromkeys(held_out)) or None,
        device=device,
    )
    run.check()
    run.check_settings()
    with _kept(run.folder):
        if run.waiting():
            run.check_backbone()
            run.check_images()
            run.workload().check_room(run.folder)
        records = run.train()
    text = "\n".join([*_networks(records), "", f"the networks are in {run.folder}"])
    fields = {"run": str(run.folder), "networks": _network_fields(records)}
    return Answer(text, fields, [command("extract", run.folder)])


def _whole_name(backbone: str) -> str:
    """Name of a backbone; that of a folder with its full path, which stays valid elsewhere."""
    family, _, folder = backbone.partition(":")
    if family == "hf" and Path(folder).is_dir():
        return f"hf:{Path(folder).resolve()}"
    return backbone


def _stem(source: Path) -> str:
    """Name for what is made of a source: its folder's, or its file's without the ending."""
    path = source.resolve()
    return path.name if path.is_dir() else path.name.split(".")[0] or path.name


@contextmanager
def _kept(folder: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.add_note(f"what is done stays in {folder}, and the same command goes on from there")
        raise


def _networks(records: Sequence[TrainingRecord]) -> list[str]:
    """Trained networks, one line each."""
    names = ["none: a ceiling" if r.held_out is None else r.held_out for r in records]
    width = max(map(len, [*names, "held out"]))
    lines = [f"{'held out':<{width}}  trial  draw   step  validation  new domain"]
    for name, r in zip(names, records, strict=True):
        score = f"{100 * r.accuracy['all']:.1f}" if r.accuracy else ""
        lines.append(
            f"{name:<{width}}  {r.trial:>5}  {r.draw:>4}  {r.step:>5}  {100 * r.value:>10.1f}  "
            f"{score:>10}".rstrip()
        )
    return lines


def _network_fields(records: Sequence[TrainingRecord]) -> list[dict[str, Any]]:
    names = ("held_out", "trial", "draw", "step", "value", "accuracy")
    return [{name: getattr(record, name) for name in names} for record in records]


def extract(
    source: Path,
    /,
    *,
    out: Path | None = None,
    backbone: str | None = None,
    size: int | None = None,
    norm_stats: Literal["network", "domain"] = "network",
    dtype: Literal["float32", "float16"] = "float32",
    device: Device = "auto",
) -> Answer:
    """Write features of every row, by these networks or a pretrained one.

    Parameters
    ----------
    source
        Folder that `skdare train` wrote; or images or a table, as for train.
    out
        Folder of the feature store  [default: NAME.features]
    backbone
        timm:NAME, torchvision:NAME, or hf:FOLDER  [default: timm:tf_efficientnet_lite0]
    size
        Side of images, or tokens of a text  [default: the network's]
    norm_stats
        Statistics of batch norms: the network's own, or of each domain's rows.
    dtype
        How features are stored.
    device
        Where to compute.
    """
    from skdare.features import Recipe
    from skdare.features.examples.listing import RUN_SETTINGS
    from skdare.features.examples.source import ExampleSource
    from skdare.features.run import Run

    how: Mapping[str, Any] = {"norm_stats": norm_stats, "dtype": dtype, "device": device}
    if (source / RUN_SETTINGS).exists():
        given = {"out": out, "backbone": backbone, "size": size}
        for name, value in given.items():
            if value is not None:
                raise InputError(f"'{source}' is a run, which has its own {name}", "leave it out")
        run = Run.open(source, **how)
        with _kept(source):
            stores = run.extract()
    else:
        target = out or Path(f"{_stem(source)}.features")
        options = {} if size is None else {"size": size}
        place = ExampleSource(str(source))
        run = Run(target, place, _whole_name(backbone or _BACKBONE), Recipe(), options, **how)
        with _kept(target):
            stores = [run.extract_pretrained()]
    text = "\n".join([f"wrote {counted(len(stores), 'feature store')}:", *map(str, stores)])
    return Answer(text, {"stores": [str(store) for store in stores]}, [command("bench", stores[0])])


def reproduce(
    study: str,
    /,
    *,
    source: Path | None = None,
    out: Path | None = None,
    trials: int | None = None,
    held_out: Names = (),
    ablations: Names = (),
    quick: bool = False,
    dry_run: bool = False,
    device: Device = "auto",
) -> Answer:
    """Train, extract, bench and report a study of the paper.

    The same command goes on where it was stopped.

    Parameters
    ----------
    study
        digits, whose images are embedded; pacs, office-home, vlcs, terra-incognita, domainnet or
        camelyon17; or a TOML file.
    source
        Folder of the images.
    out
        Folder of the run  [default: STUDY.run]
    trials
        Splits, each with networks of its own  [default: 3]
    held_out
        Domains to hold out  [default: each]
    ablations
        Ablations to run, of whitening, constraint, mean, lambda, shrinkage, dimension, domains; or
        none  [default: the study's]
    quick
        One trial, and half of the steps.
    dry_run
        Check everything, say what would be done, and end.
    device
        Where to compute.
    """
    from skdare.features.run import FEATURES
    from skdare.features.training.recipe import Job
    from skdare.paper.reproduction import Reproduction
    from skdare.paper.study_file import StudyFile

    work = Reproduction.of(
        StudyFile.read(study),
        source=source,
        out=out,
        trials=trials,
        held_out=held_out,
        ablations=ablations,
        quick=quick,
        device=device,
    )
    run = work.run
    if dry_run or run.waiting():
        work.check()
    if dry_run:
        return _dry(study, run, run.workload(), work.ablations)
    with _kept(run.folder):
        records = run.train()
        run.extract()
        found = work.bench()
    page = work.records.folder / "report.html"
    numbers = page.with_suffix(".csv")
    picture = page.with_name("figure1.svg")
    contents = {
        page: found.page().encode(),
        numbers: found.frame.to_csv(index=False).encode(),
        picture: found.figure(),
    }
    for path, content in contents.items():
        with whole_file(path) as file:
            file.write(content)
    text = f"{found.text()}\n\nwrote {page}, a page for your browser, {numbers} and {picture}"
    fields = {
        "run": str(run.folder),
        "networks": _network_fields(records),
        "scores": found.frame.to_dict("records"),
        "files": [str(path) for path in contents],
    }
    first = work.places[0]
    store = run.folder / FEATURES / Job(*first).place
    return Answer(text, fields, [command("bench", store, "--held-out", first[0])])


def _dry(study: str, run: Run, work: Workload, ablations: Sequence[str]) -> Answer:
    """What a run has yet to do."""
    from skdare.features.training.workload import free_bytes

    counts = run.source.counts()
    trained = len(run.planned) - work.networks
    fields: dict[str, Any] = {
        "study": study,
        "source": run.source.path,
        "domains": counts,
        "classes": len(run.source.classes()),
        "images": sum(counts.values()),
        "trained": trained,
        "networks": work.networks,
        "steps": run.recipe.steps,
        "passes": work.passes,
        "network_bytes": work.network_bytes,
        "feature_bytes": work.feature_bytes,
        "decoded_bytes": work.pixel_bytes,
        "hours": work.hours,
        "ablations": list(ablations),
    }
    time = "not known for this network"
    if work.hours is not None:
        time = f"{work.hours[0]:,.1f} to {work.hours[1]:,.1f} hours on one H200; heads come on top"
    free = free_bytes(run.folder)
    lines = {
        "study": study,
        "source": run.source.path,
        "domains": ", ".join(f"{name} {n:,}" for name, n in counts.items()),
        "classes": f"{fields['classes']:,}",
        "networks": f"{work.networks:,} to train, {trained:,} trained already",
        "steps": f"{run.recipe.steps:,}, a checkpoint every {run.recipe.check_every:,}",
        "images": f"{work.passes:,} passes through networks",
        "time": time,
        "disk": f"{work.disk_bytes / 1e9:.1f} GB in {run.folder}; {free / 1e9:.1f} GB are free",
        "memory": f"{work.pixel_bytes / 1e9:.1f} GB of decoded images",
        "ablations": ", ".join(ablations) or "none",
    }
    return Answer("\n".join(facts(lines)), fields)


def theory(*, out: Path = Path("theory.html"), quick: bool = False, seed: int = 0) -> Answer:
    """Measure what the paper proves, and where it fails.

    Parameters
    ----------
    out
        Page with the figures.
    quick
        Fewer repeats: seconds, and rougher numbers.
    seed
        Seed of all random draws.
    """
    from dataclasses import asdict

    from skdare.checks import check_count
    from skdare.paper.theory import CHAPTERS
    from skdare.paper.theory.page import chapter_text, heading, tally, theory_page

    writable(out, "page")
    check_count("seed", seed, 0)
    chapters = [CHAPTERS[name](seed, quick) for name in tracked(list(CHAPTERS), "chapters")]
    with whole_file(out) as file:
        file.write(theory_page(chapters).encode())
    width = min(max(shutil.get_terminal_size().columns, 80), _WIDEST)
    parts = [heading(width), *(chapter_text(chapter, width) for chapter in chapters)]
    parts += [f"{tally(chapters)}\nwrote {out}, a page with pictures for your browser"]
    statements = [
        {"chapter": chapter.title, **asdict(claim), "told": claim.told}
        for chapter in chapters
        for claim in chapter.claims
    ]
    return Answer("\n\n".join(parts), {"out": str(out), "statements": statements})
