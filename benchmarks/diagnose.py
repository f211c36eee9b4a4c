"""Is a diagnosis right? Domains of the real sets, each as the new one.

    python benchmarks/diagnose.py [--data FOLDER] [--sets twin-gas,heart,…] [--domains 10]
                                  [--out diagnose.jsonl]

For each held-out domain the choosing head is fitted to the others and rehearsed, and diagnoses the
new rows without their labels. Then the labels are looked at: what the head scored as it was,
adapted, and adapted with the number of labels that was named. Rules were chosen on the
sets of `DECIDED_ON`; the others are reported apart. A run goes on where an earlier one stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evidence_choice import DECIDED_ON
from real_data import LOADERS, Fold, Rows, data_root
from resumed import resumed
from skdare import DAREClassifierCV, DARERegressorCV
from skdare.diagnosis._recommendation import ADAPT, DO_NOT_USE, LABEL, USE, WORTH

# The default of `diagnose`.
LABEL_COST = 0.05
# Within this of the best of the four, an action is as good.
CLOSE = 0.01
# A gain or loss of adapting that matters.
NOTABLE = 0.02
# What labels may have to promise beyond their cost, to be asked for.
MARGINS = (0.0, 0.01, WORTH[LABEL], 0.03, 0.05, 0.1, np.inf)


def folds(name: str, root: Path, most: int) -> list[Fold]:
    """Leave-one-domain-out folds of a set, of many domains some, evenly spread."""
    pairs = [(data, held_out) for data in LOADERS[name](root) for held_out in _held_out(data)]
    numbers = np.unique(np.linspace(0, len(pairs) - 1, most).round().astype(int))
    return [data.fold(held_out) for data, held_out in (pairs[number] for number in numbers)]


def _held_out(data) -> list:
    return list(data.held_out or np.unique(data.domains))


def training_rows(fold: Fold) -> Rows:
    """With the rows set aside, which nothing here validates on."""
    parts = [
        [getattr(rows, field) for rows in (fold.train, fold.aside)]
        for field in ("X", "y", "domains")
    ]
    return Rows(*(np.concatenate(part) for part in parts))


def measure(fold: Fold) -> dict:
    """Diagnose one fold, then look at its labels."""
    train = training_rows(fold)
    new = fold.test
    head = DAREClassifierCV() if fold.task == "classification" else DARERegressorCV()
    head.set_params(preparation=fold.preparation)
    head.fit(train.X, train.y, domains=train.domains)
    head.rehearse(train.X, train.y, domains=train.domains)
    diagnosis = head.diagnose(new.X)
    chosen = diagnosis.recommendation
    record = {
        "set": fold.name,
        "held_out": fold.held_out,
        "task": fold.task,
        "action": chosen.action,
        "rows": len(new.y),
    }
    if not diagnosis.forecasts:
        return record
    score = head.rehearsal_.task.score
    adapted = head.adapt(new.X)
    true = {
        USE: score(head.predict(new.X), new.y),
        ADAPT: score(adapted.predict(new.X), new.y),
        DO_NOT_USE: chosen.worth[DO_NOT_USE],
    }
    if LABEL in diagnosis.forecasts:
        true[LABEL] = _labelled(head, new, chosen.labelled_rows) - LABEL_COST
    forecasts = {
        name: [one.expected, one.low, one.high] for name, one in diagnosis.forecasts.items()
    }
    return record | {"true": true, "forecasts": forecasts, "worth": dict(chosen.worth)}


def _labelled(head, new: Rows, n: int) -> float:
    """The score on the other rows after adapting with labels of n random ones."""
    order = np.random.default_rng(0).permutation(len(new.y))
    rest = order[n:]
    labels = np.full(len(new.y), None, dtype=object)
    labels[order[:n]] = new.y[order[:n]]
    if hasattr(head, "classes_"):
        labels[~np.isin(new.y, head.classes_)] = None
    adapted = head.adapter().partial_fit(new.X, labels).head_
    return head.rehearsal_.task.score(adapted.predict(new.X[rest]), new.y[rest])


def table(records: Sequence[dict], title: str) -> None:
    """Print how often forecasts and recommendations were right, by set and over all."""
    print(f"\n{title}: {len(records)} held-out domains\n")
    print(
        "| set | domains | as it is: error | in the range | adapted: error | in the range "
        "| action within a point | regret |"
    )
    print("| --- |" + " ---: |" * 7)
    names = list(dict.fromkeys(record["set"] for record in records))
    for name in names:
        print(_row(name, [record for record in records if record["set"] == name]))
    if len(names) > 1:
        print(_row("**all**", records))
    for words, wanted in (("gained", 1), ("lost", -1)):
        told = [
            record["action"] == ADAPT
            for record in records
            if wanted * (record["true"][ADAPT] - record["true"][USE]) >= NOTABLE
        ]
        if told:
            print(
                f"\nadapting {words} two points or more in {len(told)} domains, and was "
                f"recommended in {sum(told)} of them"
            )


def curve(records: Sequence[dict], title: str) -> None:
    """Print what comes of asking for labels less readily."""
    print(f"\n{title}: labels must promise this much more than anything else\n")
    print("| points | labels asked for | action within a point | regret |")
    print("| ---: |" + " ---: |" * 3)
    for margin in MARGINS:
        actions = [_action(record, margin) for record in records]
        asked = sum(action == LABEL for action in actions)
        points = "never" if margin == np.inf else f"{100 * margin:.0f}"
        print(f"| {points} | {asked} | {_right(records, actions)} |".replace("%", " %"))


def _action(record: dict, margin: float) -> str:
    """The recommendation, were labels to promise this much more."""
    worth = dict(record["worth"])
    handicap = WORTH | {LABEL: margin}
    expected, low, high = record["forecasts"][USE]
    if high - low > 2 * max(expected, 0.0):
        del worth[USE]
    return max(worth, key=lambda action: worth[action] - handicap.get(action, 0.0))


def _right(records: Sequence[dict], actions: Sequence[str]) -> str:
    """How often these actions were as good as the best, and what they cost on average."""
    regrets = [
        max(record["true"].values()) - record["true"][action]
        for record, action in zip(records, actions, strict=True)
    ]
    close = np.mean([regret <= CLOSE for regret in regrets])
    return f"{close:.0%} | {100 * np.mean(regrets):.1f}"


def _row(name: str, records: Sequence[dict]) -> str:
    cells = [name, str(len(records))]
    for action in (USE, ADAPT):
        pairs = [
            (record["forecasts"].get(action, record["forecasts"][USE]), record["true"][action])
            for record in records
        ]
        errors = [abs(forecast[0] - score) for forecast, score in pairs]
        held = [forecast[1] <= score <= forecast[2] for forecast, score in pairs]
        cells += [f"{100 * np.mean(errors):.1f}", f"{np.mean(held):.0%}"]
    cells.append(_right(records, [record["action"] for record in records]))
    return f"| {' | '.join(cells)} |".replace("%", " %")


def main() -> None:
    """Measure, and print tables by half."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--sets", default=",".join(LOADERS))
    parser.add_argument("--domains", type=int, default=10)
    parser.add_argument("--out", default="diagnose.jsonl")
    args = parser.parse_args()
    root = data_root(args.data)
    held_out = (fold for name in args.sets.split(",") for fold in folds(name, root, args.domains))
    done = resumed(args.out, held_out, lambda fold: [measure(fold)])
    answered = [record for record in done if "true" in record]
    print(f"\n{len(done) - len(answered)} domains of fewer than 20 rows had no answer")
    for task in ("classification", "regression"):
        for title, chosen in (("rules chosen on", True), ("not chosen on", False)):
            records = [
                r for r in answered if r["task"] == task and (r["set"] in DECIDED_ON) == chosen
            ]
            if records:
                table(records, f"{task}, {title}")
                curve(records, f"{task}, {title}")


if __name__ == "__main__":
    main()
