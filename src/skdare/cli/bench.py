"""`skdare bench`, `skdare report` and `skdare demo`: heads compared on held-out domains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.cli.answer import Answer, command, facts
from skdare.cli.outputs import HEAD, named_after, writable
from skdare.cli.tables import Columns, Names, Preparation, Task, options, read_labelled, task_of
from skdare.errors import InputError
from skdare.progress import reached

if TYPE_CHECKING:
    from skdare.report import Summary


def bench(
    file: Path,
    /,
    *,
    out: Path | None = None,
    heads: Names = (),
    held_out: Names = (),
    metric: str | None = None,
    repeats: int = 1,
    columns: Columns = Columns(),
    task: Task | None = None,
    preparation: Preparation = "auto",
) -> Answer:
    """Compare heads by holding out each domain in turn, and recommend one.

    Results are kept as they finish: the same command goes on where it was stopped.

    Parameters
    ----------
    file
        CSV, TSV, Parquet, Feather or npz, or a feature store.
    out
        Folder of the run  [default: NAME.bench]
    heads
        Heads to compare, of erm, by-hand, dare-cv, dare-cv-adapted, dare, dare-adapted, reweighted,
        groupdro, irm, anchor  [default: the first four and dare-adapted]
    held_out
        Domains to hold out  [default: each]
    metric
        Metric, such as balanced_accuracy or roc_auc  [default: accuracy, or r2]
    repeats
        Times to hold out each domain; from 2 on, each time with another 80 % of the rows.
    task
        Kind of target  [default: guessed]
    preparation
        As in fit: auto, standardize or none.
    """
    from skdare.bench import Settings, run_bench
    from skdare.bench.record import ABOUT, RECORDS
    from skdare.report import Summary

    out = out or named_after(file, ".bench")
    there = {path.name for path in out.iterdir()} - {".lock"} if out.is_dir() else set()
    if there and not there & {ABOUT, RECORDS}:
        what = f"the folder '{out}' holds other files, and no run"
        raise InputError(what, "give the name of a new folder with --out")
    data = read_labelled(file, columns)
    settings = Settings(heads, held_out, metric or "", repeats, task_of(data, task), preparation)
    try:
        run = run_bench(
            data, out, settings, progress=lambda _, done, total: reached("trials", done, total)
        )
    except KeyboardInterrupt as stop:
        stop.add_note(f"what is done stays in {out}, and the same command goes on from there")
        raise
    summary = Summary.of(run)
    prepared = None if preparation == "auto" else preparation
    same = options(columns, task=task, preparation=prepared)
    following = _commands(summary, file, out, same)
    failed = bool(summary.frame["score"].isna().all())
    return Answer(str(summary), _fields(summary, out), following, failed)


def _commands(summary: Summary, file: Path, run: Path, same: list[str]) -> list[str]:
    """Commands that fit and use the recommended head, or a better comparison."""
    from skdare.report.advice import advise

    advice = advise(summary)
    if advice.metric:
        out = run.with_name(f"{run.stem}.{advice.metric}.bench")
        return [command("bench", file, *same, "--metric", advice.metric, "--out", out)]
    if not advice.fit:
        return [command("report", run)]
    chosen = [] if advice.fit == "dare-cv" else ["--head", advice.fit]
    if advice.l2 not in (None, 0.01):  # the strength that served it here, if it is not the usual
        chosen += ["--set", f"l2={advice.l2:g}"]
    serve = "adapt" if advice.adapts else "diagnose"
    return [
        command("fit", file, *same, *chosen),
        command(serve, named_after(file, HEAD), "NEW.csv"),
        command("report", run),
    ]


def _fields(summary: Summary, run: Path) -> dict[str, Any]:
    from skdare.report.advice import advise

    advice = advise(summary)
    return {
        "run": str(run),
        "head": advice.head,
        "advice": str(advice),
        "trials": len(summary.frame),
        "failed": int(summary.frame["score"].isna().sum()),
        "statistics": summary.tidy().to_dict("records"),
    }


def report(run: Path, /, *, out: Path | None = None) -> Answer:
    """Write the page of a bench, with pictures and every number.

    Parameters
    ----------
    run
        Folder that `skdare bench` wrote.
    out
        File to write  [default: RUN/report.html]
    """
    from skdare.bench.record import RecordFile
    from skdare.files import whole_file
    from skdare.report import Summary

    if not run.is_dir():
        raise InputError(f"there is no folder '{run}'", "give one that skdare bench has written")
    page = out or run / "report.html"
    numbers = page.with_suffix(".csv")
    outputs = writable(page, "page"), writable(numbers, "numbers")
    summary = Summary.of(RecordFile(run))
    texts = summary.page(), summary.tidy().to_csv(index=False)
    for output, text in zip(outputs, texts, strict=True):
        with whole_file(output.path) as file:
            file.write(text.encode())
    about = "a page for your browser", "every number of it"
    lines = {"wrote": outputs[0].wrote(about[0]), "and": outputs[1].wrote(about[1])}
    return Answer("\n".join(facts(lines)), {"files": [str(page), str(numbers)]})


def demo(*, out: Path = Path("skdare-demo")) -> Answer:
    """Show a gain of adapting on real data, and its limit.

    Parameters
    ----------
    out
        Folder of the two benches.
    """
    from skdare.demo import Demo

    shown = Demo.run(out)
    fields = {"out": str(out), "scores": shown.scores}
    following = [command("check", "FILE.csv", "--target", "COLUMN", "--domains", "COLUMN")]
    return Answer(shown.text, fields, following)
