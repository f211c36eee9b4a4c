"""What a study would do: its data, networks, disk and hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skdare._safe_text import counted
from skdare.cli._output import as_object, say
from skdare.cli._quantities import file_size, listed, number

if TYPE_CHECKING:
    from skdare.features.training.workload import Workload
    from skdare.reproduce import Reproduction


def show_work(
    study: str,
    run: Reproduction,
    work: Workload,
    compared: Mapping[str, Sequence[str]],
    *,
    as_json: bool,
) -> None:
    """Print what a run has yet to do, as lines or as one object.

    What will be compared, and with what, comes by names.
    """
    facts = {**_facts(study, run, work), **compared}
    if as_json:
        as_object(facts)
        return
    disk = facts["disk"]
    where = "in memory" if run.source.cache is None else f"in {run.source.cache}"
    lines = {
        "study": study,
        "source": run.source.path,
        "domains": listed(f"{name} {number(n)}" for name, n in facts["domains"].items()),
        "classes": number(facts["classes"]),
        "images": number(facts["images"]),
        "networks": _networks(run, work, facts["trained"]),
        "steps": f"{number(run.recipe.steps)}, a checkpoint every {number(run.recipe.check_every)}",
        "disk": f"{file_size(disk['networks'])} of networks, {file_size(disk['features'])} of "
        f"features in {run.folder}; {file_size(disk['free'])} free",
        "decoded": f"{file_size(work.pixel_bytes)} {where}",
        "time": _time(work),
        **{name: listed(values) for name, values in compared.items() if values},
    }
    width = max(map(len, lines))
    say(*(f"{name:<{width}}  {text}" for name, text in lines.items()))


def _facts(study: str, run: Reproduction, work: Workload) -> dict[str, Any]:
    """All that is known before the first step."""
    from skdare.features.training.workload import free_bytes

    counts = run.source.counts()
    return {
        "study": study,
        "source": run.source.path,
        "domains": counts,
        "classes": len(run.source.classes()),
        "images": sum(counts.values()),
        "trained": len(run.planned) - work.networks,
        "networks": work.networks,
        "steps": run.recipe.steps,
        "passes": work.passes,
        "disk": {
            "folder": run.folder,
            "networks": work.network_bytes,
            "features": work.feature_bytes,
            "free": free_bytes(run.folder),
        },
        "decoded": work.pixel_bytes,
        "rate": work.rates,
        "hours": work.hours,
    }


def _networks(run: Reproduction, work: Workload, trained: int) -> str:
    """How many networks there are to train, and what that number is made of."""
    held_out = {job.held_out for job in run.planned} - {None}
    left_out = f"{counted(len(held_out), 'domain')} held out"
    reasons = [
        f"{left_out} and none" if run.ceilings else left_out,
        counted(run.trials, "trial"),
        counted(run.recipe.draws, "draw"),
    ]
    already = f", {number(trained)} trained already" if trained else ""
    return f"{number(work.networks)} to train{already} ({', '.join(reasons)})"


def _time(work: Workload) -> str:
    """The time that networks and features take, and what that rests on."""
    passes = f"{number(work.passes)} images through networks"
    if work.hours is None or work.rates is None:
        return f"not known for this network: {passes}; give --rate, in images a second"
    unit, scale = ("hours", 1) if work.hours[1] >= 1 else ("minutes", 60)
    least, most = (f"{scale * hours:,.1f}" for hours in work.hours)
    slow, fast = (number(round(rate)) for rate in work.rates)
    if slow == fast:
        return f"{least} {unit} for {passes} at {fast} a second; heads come on top"
    return (
        f"{least} to {most} {unit} on one H200 for {passes} at {fast} to {slow} a second; heads "
        "come on top"
    )
