"""Write descriptions of Debian packages with their topic, as a table of text, label and domain.

    apt-get update                                    # as root, on Debian
    python benchmarks/debian_sentences.py OUT.csv

The data: the one-line descriptions that maintainers give to their packages. The label is the topic,
by the archive section that the package lies in (science with mathematics and electronics, network
with mail and web, and so on: `TOPICS`); sections that are no topic, such as libraries, are left
out. The domain is what the package is built with, by what it depends on: Qt, GTK, Python, Perl,
C++, plain C, or none of these (other: shell, Emacs, Java, data). One package of each source package
is kept, so that no description stands in two domains in two wordings, and texts that occur twice
keep one row. At most 2,000 rows of a domain are drawn, with seed 0: the same package lists give the
same table. Debian 12.15 gave 6,777 rows in seven domains.

Where from: the package lists of apt (``/var/lib/apt/lists``); nothing but ``apt-get update`` is
needed, and no package is installed. Licence: a description is part of its package and under that
package's free licence, which differs from row to row; the copyright is with the maintainers, so
pass on this script and not the table. Cite: Debian project, package lists of the release and the
date in your ``InRelease`` file, https://www.debian.org.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LISTS = Path("/var/lib/apt/lists")
HELPER = "/usr/lib/apt/apt-helper"  # reads a list whichever way apt compressed it
TOPICS = {
    "games": "games",
    "graphics": "graphics",
    "sound": "media",
    "video": "media",
    "net": "network",
    "mail": "network",
    "web": "network",
    "httpd": "network",
    "comm": "network",
    "news": "network",
    "science": "science",
    "math": "science",
    "electronics": "science",
    "admin": "system",
    "kernel": "system",
    "shells": "system",
    "text": "text",
    "editors": "text",
    "tex": "text",
}
# The first that a dependency matches.
BUILT_WITH = {
    "qt": r"libqt[4-6]|libkf[56]|python3-pyqt|python3-pyside|qml-",
    "gtk": r"libgtk|gir1\.2-gtk|libadwaita|libgnome",
    "python": r"python3",
    "perl": r"perl$|lib.*-perl$",
    "c++": r"libstdc\+\+",
    "c": r"libc6",
}


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    text: str
    label: str
    domain: str


def stanzas(lists: Path) -> Iterator[dict[str, str]]:
    """Every package of Debian's own lists, as fields by name."""
    paths = sorted(lists.glob("*_debian*_dists_*_main_binary-*_Packages*"))
    if not paths:
        raise SystemExit(f"error: {lists} has no package lists of Debian\n\nhint: apt-get update")
    for path in paths:
        shown = subprocess.run([HELPER, "cat-file", path], check=True, capture_output=True)
        for stanza in shown.stdout.decode("utf-8").split("\n\n"):
            fields = dict(re.findall(r"^([\w-]+): *(.*)", stanza, flags=re.MULTILINE))
            if fields:
                yield fields


def domain(fields: dict[str, str]) -> str:
    """What a package is built with, by what it depends on."""
    given = ", ".join(fields.get(name, "") for name in ("Pre-Depends", "Depends"))
    names = [re.split(r"[ (:]", name.strip())[0] for name in re.split(r"[,|]", given)]
    for built, pattern in BUILT_WITH.items():
        if any(re.match(pattern, name) for name in names):
            return built
    return "other"


def table(lists: Path) -> dict[str, list[Row]]:
    """The rows of every domain: one of each source package."""
    packages: dict[str, dict[str, str]] = {}
    for fields in stanzas(lists):
        if fields.get("Section") in TOPICS:
            source = fields.get("Source", fields["Package"]).split()[0]
            kept = packages.setdefault(source, fields)
            # The package that is named like its source is the one that is meant.
            if fields["Package"] == source != kept["Package"]:
                packages[source] = fields
    found: dict[str, Row] = {}
    for _, fields in sorted(packages.items()):
        text = fields["Description"]
        found.setdefault(text, Row(text, TOPICS[fields["Section"]], domain(fields)))
    domains = defaultdict(list)
    for row in found.values():
        domains[row.domain].append(row)
    return domains


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="the table, as CSV")
    parser.add_argument("--lists", type=Path, default=LISTS, help="the package lists of apt")
    parser.add_argument("--most", type=int, default=2000, help="rows of a domain")
    given = parser.parse_args()
    drawn = random.Random(0)
    kept = [
        row
        for _, found in sorted(table(given.lists).items())
        for row in drawn.sample(found, min(given.most, len(found)))
    ]
    with given.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "domain"])
        writer.writerows((row.text, row.label, row.domain) for row in kept)
    for name, count in sorted(Counter(row.domain for row in kept).items()):
        each = Counter(row.label for row in kept if row.domain == name)
        print(f"{name}: {count} rows,", ", ".join(f"{n} {c}" for c, n in sorted(each.items())))


if __name__ == "__main__":
    main()
