"""`skdare bench`, `skdare report` and `skdare demo`: which head is better, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.cli.answer import Answer, command
from skdare.cli.tables import (
    HEAD,
    Columns,
    Names,
    Task,
    beside,
    options,
    read_labelled,
    task_of,
    writable,
)
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
) -> Answer:
    """Hold out each domain in turn, and say which head to use and how sure.

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
        What to score by, such as balanced_accuracy  [default: accuracy, or r2]
    repeats
        How often each domain is held out; from 2 on, each time with other 80 % of the rows.
    task
        What the target is  [default: guessed]
    """
    from skdare.bench import Settings, run_bench
    from skdare.report import Summary

    out = out or beside(file, ".bench")
    data = read_labelled(file, columns)
    settings = Settings(
        heads, held_out, metric=metric or "", repeats=repeats, task=task_of(data, task)
    )
    try:
        run = run_bench(
            data, out, settings, progress=lambda _, done, total: reached("trials", done, total)
        )
    except KeyboardInterrupt as stop:
        stop.add_note(f"what is done stays in {out}, and the same command goes on from there")
        raise
    summary = Summary.of(run)
    following = _commands(summary, file, options(columns, task=task))
    failed = bool(summary.frame["score"].isna().all())
    return Answer(str(summary), _fields(summary, out), [*following, command("report", out)], failed)


def _commands(summary: Summary, file: Path, same: list[str]) -> list[str]:
    """What fits the head that is advised, and serves it."""
    from skdare.report.advice import advise

    advice = advise(summary)
    given = [] if advice.fit == "dare-cv" else ["--head", advice.fit]
    if advice.l2 not in (None, 0.01):  # the strength that served it here, where it is not the usual
        given += ["--set", f"l2={advice.l2:g}"]
    serve = "adapt" if advice.adapts else "predict"
    return [
        command("fit", file, *same, *given),
        command(serve, beside(file, HEAD), "NEW.csv"),
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
    out = writable(out or run / "report.html", ending=".html")
    summary = Summary.of(RecordFile(run))
    numbers = out.with_suffix(".csv")
    texts = {out: summary.page(), numbers: summary.tidy().to_csv(index=False)}
    for path, text in texts.items():
        with whole_file(path) as file:
            file.write(text.encode())
    text = f"wrote {out}, a page for your browser\nwrote {numbers}, every number of it"
    return Answer(text, {"files": [str(out), str(numbers)]})


def demo(*, out: Path = Path("skdare-demo")) -> Answer:
    """Show on real data what to expect of adapting: a win, and its limit.

    Parameters
    ----------
    out
        Folder of the runs.
    """
    from skdare.demo import Demo

    shown = Demo.run(out)
    fields = {"out": str(out), "scores": shown.scores}
    following = [command("check", "FILE.csv", "--target", "COLUMN", "--domains", "COLUMN")]
    return Answer(shown.text, fields, following)
