"""Is a diagnosis right? Every domain of the real sets as the new one.

    python benchmarks/diagnose.py [--data FOLDER] [--sets pacs,gas,…] [--stores RUN/features]
                                  [--out diagnose.jsonl]

For each held-out domain a head is fitted to the others and rehearsed, and diagnoses the new rows
without their labels. Then the labels are looked at: what the head scored as it was, adapted, and
retrained with the number of labelled rows that was recommended. The first table relates the
expected loss, and the usual signs of a shift, to the true loss; the second says how often the
recommended action was the best of the four, and what was lost where it was not.

The rule for the expected loss was chosen among about twenty on the sets marked "chosen on" (for
`wisdm`, every third person); no choice has looked at the other people, nor at what `--stores` adds.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from real_data import LOADERS, Fold, Rows, data_root
from skdare import DAREClassifier, DARERegressor
from skdare.datasets import DomainData, load_digit_domains, read_fine_tuned
from skdare.diagnosis._performance_finding import WORTH
from skdare.diagnosis._score_scale import read

# The default of `diagnose`.
LABEL_COST = 0.05
CHOSEN_ON = ("pacs", "gas", "office", "heart", "digits", "wisdm:third")
UNSEEN = ("wisdm:rest", "stores")
REGRESSION = ("gas-log-ppm", "prsa", "crime:third")
MOST = 1500


def folds(name: str, root: Path) -> Iterator[Fold]:
    """Leave-one-domain-out folds of a set, or of a part of it: every third domain, or the rest."""
    if name == "digits":
        data = load_digit_domains()
        for domain in np.unique(data.domains):
            yield held_out_fold(name, str(domain), data, data.domains == domain)
        return
    base, _, part = name.partition(":")
    found = [fold for data in LOADERS[base](root) for fold in data.folds()]
    for number, fold in enumerate(found):
        if not part or (part == "third") == (number % 3 == 0):
            yield fold


def held_out_fold(name: str, where: str, data: DomainData, new: np.ndarray) -> Fold:
    """Without rows set aside."""
    rows = [Rows(data.X[i], data.y[i], data.domains[i]) for i in (~new, new, new[:0])]
    return Fold(name, where, "classification", *rows, np.zeros(int(new.sum()), dtype=bool))


def stored(path: str) -> Iterator[Fold]:
    """Folds of fine-tuned features, a table for each held-out domain and trial."""
    for (held_out, trial), table in read_fine_tuned(path).items():
        where = f"{held_out}, trial {trial}"
        yield held_out_fold("stores", where, table, table.domains == held_out)


def training_rows(fold: Fold) -> Rows:
    """With the rows set aside, which nothing here validates on."""
    parts = [
        [getattr(rows, field) for rows in (fold.train, fold.aside)]
        for field in ("X", "y", "domains")
    ]
    return Rows(*(np.concatenate(part) for part in parts))


def root(S: np.ndarray) -> np.ndarray:
    """Symmetric."""
    values, vectors = np.linalg.eigh(S)
    return (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T


def signs(train: Rows, new: np.ndarray) -> dict[str, float]:
    """What one would look at: domain classifier, distance of means, Fréchet distance."""
    rng = np.random.default_rng(0)
    m = min(len(train.X), len(new), MOST)
    both = np.concatenate([A[rng.permutation(len(A))[:m]] for A in (train.X, new)])
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=50, tol=1e-2))
    told = cross_val_score(classifier, both, np.repeat([0, 1], m), cv=2).mean()
    means = [A.mean(axis=0) for A in (train.X, new)]
    S, T = (np.cov(A.T, bias=True) for A in (train.X, new))
    R, gap = root(S), float(np.sum((means[0] - means[1]) ** 2))
    frechet = gap + np.trace(S) + np.trace(T) - 2 * np.trace(root(R @ T @ R))
    size = float(np.trace(S))
    return {
        "domain classifier": float(told),
        "mean distance": float(np.sqrt(gap / size)),
        "Fréchet distance": float(frechet / size),
    }


def measure(fold: Fold) -> dict:
    """Diagnose one fold, then look at its labels."""
    train, new = training_rows(fold), fold.test
    make = DAREClassifier if fold.task == "classification" else DARERegressor
    # A guess of the new domain's adjustment is one of the signs compared.
    head = make(mean_penalty=1.0).fit(train.X, train.y, domains=train.domains)
    head.rehearse(train.X, train.y, domains=train.domains)
    diagnosis, rehearsal = head.diagnose(new.X), head.rehearsal_
    task, chosen = rehearsal.task, diagnosis.recommendation
    found, adapted = read(head, new.X), read(head.adapt(new.X), new.X)
    true = {
        "use as is": task.score(found.values, new.y),
        "adapt": task.score(adapted.values, new.y),
        "do not use": chosen.worth["do not use"],
    }
    if chosen.labelled_rows and 2 * chosen.labelled_rows <= len(new.y):
        true["collect labels"] = (
            retrained(head, train, new, chosen.labelled_rows, task) - LABEL_COST
        )
    confidence = rehearsal.usual_confidence
    record = {
        "set": fold.name,
        "held_out": fold.held_out,
        "task": fold.task,
        "usual": rehearsal.usual,
        "loss": rehearsal.usual - true["use as is"],
        "gain": true["adapt"] - true["use as is"],
        "expected loss": diagnosis["loss"].numbers["loss"],
        "expected gain": diagnosis["adapting"].numbers["expected"],
        "miss": rehearsal.miss,
        "disagreement": task.disagreement(found.values, adapted.values),
        "action": chosen.action,
        "worth": dict(chosen.worth),
        "true": true,
        "levels": {finding.name: finding.level for finding in diagnosis.findings},
        **signs(train, new.X),
        "adjustment error": diagnosis["adjustment"].numbers["error"],
    }
    if confidence is not None:
        record["average confidence"] = rehearsal.usual - found.confidence
        record["confidence lost"] = confidence - found.confidence
    return record


def retrained(head, train: Rows, new: Rows, n: int, task) -> float:
    """The score on the other rows after n random ones were labelled."""
    order = np.random.default_rng(0).permutation(len(new.y))
    some, rest = order[:n], order[n:]
    plain = head._retrainer()
    X, y = np.concatenate([train.X, new.X[some]]), np.concatenate([train.y, new.y[some]])
    domains = np.concatenate([train.domains.astype(str), np.full(n, "(new)")])
    plain.fit(X, y, domains=domains)
    return task.score(plain.predict(new.X[rest]), new.y[rest])


def best(true: dict[str, float]) -> str:
    """Of the actions; adapting must be worth the change."""
    return max(true, key=lambda name: true[name] - (WORTH if name == "adapt" else 0.0))


def tables(records: list[dict], title: str) -> None:
    """Print both."""
    losses = np.array([r["loss"] for r in records])
    print(f"\n{title}: {len(records)} held-out domains\n")
    print("| sign | Pearson | Spearman | mean error |")
    print("| --- | ---: | ---: | ---: |")
    names = (
        "expected loss",
        "disagreement",
        "confidence lost",
        "average confidence",
        "domain classifier",
        "mean distance",
        "Fréchet distance",
        "adjustment error",
    )
    for name in names:
        if any(name not in r for r in records):
            continue
        found = np.array([r[name] for r in records])
        scale = name in ("expected loss", "disagreement", "confidence lost", "average confidence")
        error = f"{np.mean(np.abs(found - losses)):.3f}" if scale else ""
        ranks = spearmanr(found, losses)[0]
        print(f"| {name} | {np.corrcoef(found, losses)[0, 1]:.2f} | {ranks:.2f} | {error} |")
    inside = np.mean([abs(r["loss"] - r["expected loss"]) <= r["miss"] for r in records])
    print(f"\nwithin the stated range: {inside:.0%}")
    print("\n| policy | best of the four | mean regret |")
    print("| --- | ---: | ---: |")
    policies = {"recommended": lambda r: r["action"]}
    for action in ("use as is", "adapt", "collect labels"):
        policies[f"always {action}"] = lambda r, action=action: action
    for name, policy in policies.items():
        right, regret = [], []
        for r in records:
            true, action = r["true"], policy(r)
            action = action if action in true else "use as is"
            right.append(action == best(true))
            regret.append(max(true.values()) - true[action])
        print(f"| {name} | {np.mean(right):.0%} | {np.mean(regret):.3f} |")


def main() -> None:
    """Measure, and print tables by group."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--sets", default=",".join((*CHOSEN_ON, *UNSEEN[:1], *REGRESSION)))
    parser.add_argument("--stores")
    parser.add_argument("--out", default="diagnose.jsonl")
    args = parser.parse_args()
    out = Path(args.out)
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {(r["set"], r["group"], r["held_out"]) for r in done}
    groups = {name: folds(name, data_root(args.data)) for name in args.sets.split(",") if name}
    if args.stores:
        groups["stores"] = stored(args.stores)
    with out.open("a", encoding="utf-8") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for group, found in groups.items():
            for fold in found:
                if (fold.name, group, fold.held_out) in known:
                    continue
                record = {"group": group, **measure(fold)}
                done.append(record)
                file.write(json.dumps(record) + "\n")
                file.flush()
                print(
                    f"{group} {fold.held_out}: lost {record['loss']:+.3f}, expected "
                    f"{record['expected loss']:+.3f}; {record['action']}, best "
                    f"{best(record['true'])}",
                    flush=True,
                )
    split = {
        "Chosen on": [r for r in done if r["group"] in CHOSEN_ON],
        "Not looked at": [r for r in done if r["group"] in UNSEEN],
        "Regression": [r for r in done if r["task"] == "regression"],
    }
    for title, records in split.items():
        if records:
            tables(records, title)


if __name__ == "__main__":
    main()
