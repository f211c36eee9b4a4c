"""
A new hospital arrives
======================

Fit on the hospitals you have, ask what the rows of a new one say before any label is
known, and adapt to it. How many patients does that take?
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from skdare import DAREClassifier, ERMClassifier

# %%
# Six hospitals
# -------------
# scikit-learn's breast cancer data: 30 measurements of a tumour, benign or malignant.
# We deal the patients to six hospitals, and give each hospital an instrument of its
# own: it mixes and scales the measurements a little, and has an offset. The tumours
# are real, the instruments are made up.

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
rng = np.random.default_rng(0)
hospital = rng.permutation(len(y)) % 6
for e in range(6):
    U = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    mixing = (U * np.exp(0.8 * rng.uniform(-1, 1, 30))) @ U.T
    X[hospital == e] = X[hospital == e] @ mixing + 2.0 * rng.normal(size=30)
print("patients in each hospital:", np.bincount(hospital).tolist())

# %%
# Ask before you trust
# --------------------
# Five hospitals are known, the sixth is new. ``rehearse`` holds each known hospital
# out once and keeps what happened; ``diagnose`` compares the unlabelled rows of the
# new one with that. ``adaptation="centered"`` says how this head will adapt: it takes
# away the mean of a domain and whitens by its covariance, which suits instruments with
# an offset.

known = hospital < 5
head = DAREClassifier(adaptation="centered")
head.fit(X[known], y[known], domains=hospital[known])
head.rehearse(X[known], y[known], domains=hospital[known])
print(head.diagnose(X[~known]).text(width=76))

# %%
# Hold every hospital out
# -----------------------
# What the labels say, which in use nobody has: each hospital is the new one in turn,
# and the head adapts to 5, 10, 20 … of its patients, drawn at random ten times. It is
# scored on all patients of the hospital. (Of five patients all may be healthy, or one
# may hold most of the variance, and skdare warns of both. We know that the draws are
# random, and silence it.)

warnings.simplefilter("ignore", UserWarning)
seen_rows = np.array([5, 10, 20, 40, 60, 80])
scores, erm, averaged = np.empty((6, len(seen_rows))), np.empty(6), np.empty(6)
for e in range(6):
    known, rows = hospital != e, np.flatnonzero(hospital == e)
    head.fit(X[known], y[known], domains=hospital[known])
    averaged[e] = head.score(X[rows], y[rows])
    erm[e] = ERMClassifier().fit(X[known], y[known]).score(X[rows], y[rows])
    for k, n in enumerate(seen_rows):
        draws = [rng.choice(rows, n, replace=False) for _ in range(10)]
        scores[e, k] = np.mean(
            [head.adapt(X[draw]).score(X[rows], y[rows]) for draw in draws]
        )
print(f"ERM {100 * erm.mean():.1f} %, DARE {100 * averaged.mean():.1f} %,", end=" ")
print(f"adapted to 20 {100 * scores[:, 2].mean():.1f} %,", end=" ")
print(f"to 80 {100 * scores[:, -1].mean():.1f} %")

# %%
# The thick line is the mean over the six hospitals, the thin ones are the hospitals.
# Before it adapts, DARE is about as good as plain logistic regression (ERM): the
# offset of a new instrument can lie in any of 30 directions, and five hospitals have
# shown five of them. What pays here is the unlabelled rows. With few of them the head
# stays near the averaged guess; how many patients that counts as is estimated from the
# known hospitals.

fig, ax = plt.subplots()
ax.plot(seen_rows, 100 * scores.T, color="C1", lw=0.8, alpha=0.45)
ax.plot(seen_rows, 100 * scores.mean(0), "o-", color="C1", lw=2.6, mec="white", ms=9)
ax.text(
    60,
    100 * scores[:, 4].mean() + 0.3,
    "DARE, adapted",
    color="C1",
    weight="bold",
    ha="right",
)
for value, color, name, side, nudge in (
    (averaged, "C0", "DARE, never saw it", "bottom", 0.05),
    (erm, "0.42", "ERM", "top", -0.15),
):
    ax.axhline(100 * value.mean(), color=color, lw=2)
    ax.text(
        81.5,
        100 * value.mean() + nudge,
        name,
        color=color,
        weight="bold",
        ha="right",
        va=side,
    )
ax.set(xlabel="patients of the new hospital seen, without labels", xlim=(0, 82))
ax.set_title("Accuracy on the new hospital (%)")
ax.grid(axis="y")
plt.show()
