"""
When adapting hurts, and what warns of it
=========================================

Adapting aligns the moments of the new rows with those of training. If one class is
rarer or more common in the new domain, its moments differ for that reason, and aligning
them undoes what should be left alone. How far can class shares move?
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from skdare import DAREClassifier, ERMClassifier, LabelShiftWarning

# %%
# Instruments of their own, and a share of patients of its own
# ------------------------------------------------------------
# Breast cancer data again, with a made-up instrument for each of four training
# hospitals and for every new one. The training hospitals have malignant tumours as
# often as the data has; in a new one we set the share.

X, y = load_breast_cancer(return_X_y=True)
X, sick = StandardScaler().fit_transform(X), 1 - y
rng = np.random.default_rng(0)


def instrument():
    """What a hospital makes of the measurements: it mixes them, and adds an offset."""
    U = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    return (U * np.exp(0.8 * rng.uniform(-1, 1, 30))) @ U.T, 1.5 * rng.normal(size=30)


order = rng.permutation(len(y))
train, pool = order[:320], order[320:]
hospital, seen = np.arange(320) % 4, X[train]
for e in range(4):
    A, offset = instrument()
    seen[hospital == e] = seen[hospital == e] @ A + offset
print(
    f"malignant: {100 * sick[train].mean():.0f} % in training; {len(pool)} for new ones"
)

# %%
# Use it as it is, or adapt in one of two ways
# --------------------------------------------
# ``raw`` whitens by second moments about zero and leaves the mean of the new rows in;
# ``centered`` also subtracts the mean, the most thorough alignment. Each is fitted
# once, then adapted to 120 patients of a new hospital at a share between 5 and 95 %;
# the same 20 hospitals for each share. Scores are balanced, the mean of the accuracies
# on the sick and on the healthy, so that predicting the common class does not pay.

heads = {
    "ERM": ERMClassifier(),
    "raw": DAREClassifier(adaptation="raw"),
    "centered": DAREClassifier(adaptation="centered"),
}
for head in heads.values():
    head.fit(seen, sick[train], domains=hospital)

shares = np.linspace(0.05, 0.95, 10)
instruments = [instrument() for _ in range(20)]
names = ("ERM", "DARE", "raw", "centered")
scores, warned = {name: np.zeros(len(shares)) for name in names}, np.zeros(len(shares))
for k, share in enumerate(shares):
    for A, offset in instruments:
        size = round(120 * share)
        rows = [
            rng.choice(pool[sick[pool] == c], n)
            for c, n in ((1, size), (0, 120 - size))
        ]
        rows = np.concatenate(rows)
        new, truth = X[rows] @ A + offset, sick[rows]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", LabelShiftWarning)
            adapted = {name: heads[name].adapt(new) for name in ("raw", "centered")}
        warned[k] += bool(caught) / 20
        used = {"ERM": heads["ERM"], "DARE": heads["raw"], **adapted}
        for name in names:
            right = used[name].predict(new) == truth
            scores[name][k] += np.mean([right[truth == c].mean() for c in (0, 1)]) / 20

print("share   warned  " + "  ".join(f"{name:>8}" for name in names))
for k, share in enumerate(shares):
    print(
        f"{100 * share:4.0f} %   {100 * warned[k]:5.0f} %  "
        + "  ".join(f"{100 * scores[n][k]:7.1f} %" for n in names)
    )

# %%
# The warning is about predictions
# --------------------------------
# Subtracting the mean gains most where classes are about as common as in training, or
# the sick are rarer. Where most are sick it takes the sickness for an offset and
# removes it. Whitening about zero gains less and loses less. The strip says how often
# ``adapt`` raised a ``LabelShiftWarning``: seldom at the share of training, nearly
# always far from it. It sees predicted classes only, so a strange instrument can raise
# it too, and it says "compare", not "do not": at the left end it came although
# adapting gained.

colors = {"ERM": "0.42", "DARE": "C0", "raw": "C2", "centered": "C1"}
said = {
    "raw": "adapted, raw",
    "centered": "adapted, centered",
    "DARE": "DARE as it is",
    "ERM": "ERM",
}
fig, (ax, strip) = plt.subplots(
    2,
    1,
    figsize=(6.5, 4.6),
    sharex=True,
    height_ratios=(12, 1),
    gridspec_kw={"hspace": 0.02},
)
for name, color in colors.items():
    ax.plot(100 * shares, 100 * scores[name], "o-", color=color, mec="white", ms=7)
    last = {"color": color, "weight": "bold", "va": "center", "clip_on": False}
    ax.text(97, 100 * scores[name][-1], said[name], **last)
usual = 100 * sick[train].mean()
ax.axvline(usual, color="0.75", lw=1, zorder=0)
ax.text(usual + 1, 72, "as in training", color="0.4", size=9)
ax.set_title("Balanced accuracy on the new hospital (%)")
ax.grid(axis="y")
edges = np.concatenate([[0], (shares[1:] + shares[:-1]) / 2, [1]])
strip.pcolormesh(100 * edges, [0, 1], warned[None], cmap="Oranges", vmin=0, vmax=1.3)
strip.set(
    yticks=[0.5], yticklabels=["warned"], xlabel="malignant in the new hospital (%)"
)
strip.set_xlim(0, 100)
for k, share in enumerate(shares):
    strip.text(
        100 * share, 0.47, f"{100 * warned[k]:.0f}%", ha="center", va="center", size=8
    )
plt.show()
