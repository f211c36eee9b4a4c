"""Experiments on why DARE does not gain: what the table says of scores that are known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"
# In a process of its own: the benchmark imports its neighbours by name.
LAWS = """
import why

scores = {
    0.1: {(0, "a"): 0.9, (0, "b"): 0.5, (1, "a"): 0.8, (1, "b"): 0.6},
    1.0: {(0, "a"): 0.7, (0, "b"): 0.7, (1, "a"): 0.6, (1, "b"): 0.8},
}
by = {0.1: dict.fromkeys(scores[0.1], 0.0), 1.0: dict.fromkeys(scores[0.1], 1.0)}
by[1.0][1, "a"] = -1.0
best = why.chosen(scores, by)
assert best == {(0, "a"): 0.7, (0, "b"): 0.7, (1, "a"): 0.8, (1, "b"): 0.8}, best
limit = why.chosen(scores, scores)
assert limit == {place: max(own[place] for own in scores.values()) for place in best}, limit

row = why.line("cause", "change", "DARE", best, scores[0.1])
assert row[3:6] == ["75.0", "75.0", "75.0"], row
# Gains of the two trials are 0 and 10 points, so t is 6.31 and the standard error is 5.
assert row[6] == "+5.0 ± 31.6", row
assert why.line("cause", "change", "ERM", best, best)[6] == ""

folders = [why.folder_name(experiment.change) for experiment in why.EXPERIMENTS]
assert len(set(folders)) == len(folders)
assert all(name.isascii() and not set(name) & set("/ ") for name in folders), folders
"""


def test_gains_are_over_erm_in_the_same_trial_and_each_experiment_has_a_folder():
    command = [sys.executable, "-W", "ignore", "-c", LAWS]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
