"""The command line: data on stdout, progress on stderr, exit code 2 for a user's mistake."""

from __future__ import annotations

import click

import skdare


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(skdare.__version__, prog_name="skdare")
def main() -> None:
    """Linear predictors on frozen features that hold up on domains nobody has seen."""


@main.command()
@click.option(
    "--trials",
    type=click.IntRange(1, 50),
    default=3,
    show_default=True,
    help="Draws of each data set; the intervals are over them.",
)
def demo(trials: int) -> None:
    """Compare every head on embedded data, each domain held out in turn.

    \b
    Example:
      skdare demo --trials 5
    """
    from rich.console import Console
    from rich.progress import Progress

    from skdare import demo as demonstration

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("fitting", total=trials * len(demonstration.STUDIES))
        results = []
        for study in demonstration.STUDIES:
            parts = []
            for part in demonstration.trials(study, trials):
                parts.append(part)
                progress.advance(task)
            results.append(demonstration.collect(study, parts))
    for result in results:
        options = ", ".join(f"{name}={value!r}" for name, value in result.study.options.items())
        click.echo(f"{result.study.title}: {result.study.note}")
        click.echo(f"dare is DAREClassifier({options})\n")
        click.echo(demonstration.table(result) + "\n")
    click.echo(
        "Accuracy in percent on the held-out domain, mean over "
        + (f"{trials} draws ± t-based 90 % interval." if trials > 1 else "1 draw.")
        + " dare gain: over erm."
    )
    click.echo("adapted: the dare head after head.adapt(X) on the new domain's unlabelled rows.")


if __name__ == "__main__":
    main()
