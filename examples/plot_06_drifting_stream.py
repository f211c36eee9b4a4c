"""
A stream that drifts
====================

A sensor ages, then is replaced. An adapter takes its unlabelled rows chunk by chunk and
gives a head at any moment, at a constant cost. What should it forget?
"""

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import expm

from skdare import DAREClassifier, LabelShiftWarning

# %%
# Five sensors in the laboratory, one in the field
# ------------------------------------------------
# Rows are ``A ε`` with a matrix that belongs to the sensor, and the class depends on ε
# alone. The sensor in the field ages: its matrix wanders through the first two thirds
# of the stream. Then it is replaced by another, at once.

rng = np.random.default_rng(2)
d, beta = 12, 2.0 * rng.normal(size=12)


def wiring(size):
    """The logarithm of a random symmetric matrix."""
    G = rng.normal(size=(d, d))
    return size * (G + G.T) / (2 * np.sqrt(d))


def rows(log_A, n):
    """Features, classes, and how the best possible prediction does on them."""
    latent = rng.normal(size=(n, d))
    y = (latent @ beta + rng.logistic(size=n) > 0).astype(int)
    return latent @ expm(log_A), y, np.mean((latent @ beta > 0) == y)


laboratory = [rows(wiring(0.5), 400) for _ in range(5)]
X, y = (np.concatenate([part[k] for part in laboratory]) for k in (0, 1))
head = DAREClassifier(shrinkage=0.1).fit(X, y, domains=np.repeat(range(5), 400))

# %%
# Three ways to use it
# --------------------
# ``frozen`` is the head as it left the laboratory. One adapter counts every row the
# same; the other has a half-life of 800 rows. Both take 60 rows a step; to see the
# difference we score 400 rows of the same moment, before the adapters take any of
# them. Half way the program is stopped and started again: the state of a stream is a
# file.

chunks, size = 240, 60
new, aged, bent, replaced = (wiring(s) for s in (0.5, 1.2, 1.4, 1.0))
warnings.simplefilter("ignore", LabelShiftWarning)  # classes are as common all along
everything, forgetful = head.adapter(), head.adapter(half_life=800)
names = ("frozen", "remembers all", "half-life 800", "best possible")
scores = np.empty((chunks, 4))
for t in range(chunks):
    u = t / (chunks * 2 / 3)
    log_A = (1 - u) * new + u * aged + np.sin(np.pi * u) * bent if u < 1 else replaced
    X, y, best = rows(log_A, 400)
    used = (head, everything.head_, forgetful.head_) if t else (head,) * 3
    scores[t] = [*(one.score(X, y) for one in used), best]
    everything.partial_fit(X[:size])
    forgetful.partial_fit(X[:size])
    if t == chunks // 2:
        with tempfile.TemporaryDirectory() as folder:
            forgetful.save(Path(folder) / "sensor.stream")
            resumed = head.resume(Path(folder) / "sensor.stream")
        same = np.array_equal(resumed.head_.coef_, forgetful.head_.coef_)
        print(
            f"restarted after {resumed.n_seen_:,} rows; same weights to the bit: {same}"
        )
        forgetful = resumed

third = chunks * 2 // 3
for name, first, last in zip(
    names, scores[:third].mean(0), scores[third:].mean(0), strict=True
):
    print(f"{name:14} {100 * first:.1f} % while it ages,", end=" ")
    print(f"{100 * last:.1f} % after it was replaced")

# %%
# Accuracy over the last five steps. While the sensor ages, remembering everything
# costs a little. After the replacement that adapter holds thousands of rows of a
# sensor that is gone, and falls below the head that never adapted; the other climbs
# back as its old rows fade. Forgetting has a price too: in a domain that stays as it
# is, more rows are better.

window = 5
smooth = np.stack([np.convolve(s, np.ones(window) / window, "valid") for s in scores.T])
at = size * (np.arange(smooth.shape[1]) + window)
fig, ax = plt.subplots()
for name, line, color in zip(names, smooth, ("0.42", "C5", "C1", "0.7"), strict=True):
    ax.plot(at, 100 * line, color=color, lw=1.2 if name == "best possible" else 2.4)
    place = 100 * line[-20:].mean()
    ax.text(at[-1] + 150, place, name, color=color, weight="bold", va="center")
ax.axvline(size * third, color="0.6", lw=1)
low = ax.get_ylim()[0]
ax.text(size * third + 100, low, "replaced", color="0.4", va="bottom")
ax.text(100, low, "ages", color="0.4", va="bottom")
ax.set(xlabel="unlabelled rows of the stream", xlim=(0, at[-1] + 100))
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.set_title("Accuracy on the next rows (%)")
ax.grid(axis="y")
plt.show()
