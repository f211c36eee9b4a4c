"""
Batch effects: a plate nobody has seen
======================================

Wells of a plate are measured together, and every plate has its own offset and scale.
The usual remedy takes each plate's own mean and deviation out. It needs the whole plate
before the first prediction, and a plate whose layout is like the others'. What if hits
are rare on it?
"""

import matplotlib.pyplot as plt
import numpy as np

from skdare import DAREClassifier, ERMClassifier

# %%
# Plates
# ------
# 96 wells, 20 features; a hit moves them along one direction. Each plate mixes the
# features a little and adds an offset in three directions. Eight training plates have
# between 10 and 90 % hits, so that the plate tells something of the class, and a head
# may learn that by mistake.

rng = np.random.default_rng(1)
effect = rng.normal(size=20)
effect *= 1.5 / np.linalg.norm(effect)
drift = np.linalg.qr(rng.normal(size=(20, 3)))[0]


def plate(hits):
    """The features of 96 wells, of which these are hits."""
    latent = rng.normal(size=(96, 20)) + np.outer(2 * hits - 1, effect)
    U = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    mixing = (U * np.exp(0.3 * rng.uniform(-1, 1, 20))) @ U.T
    return latent @ mixing + 3.0 * drift @ rng.normal(size=3)


def some(share):
    """Which of 96 wells are hits: a share of them, anywhere."""
    return rng.permutation(np.arange(96) < share * 96).astype(int)


hits = [some(share) for share in rng.permutation(np.linspace(0.1, 0.9, 8))]
plates = [plate(h) for h in hits]
X, y, number = np.concatenate(plates), np.concatenate(hits), np.repeat(range(8), 96)

# %%
# Three ways
# ----------
# One head for features that were standardised plate by plate, and two for features as
# they are.


def standardised(wells):
    """A plate by its own mean and deviation."""
    return (wells - wells.mean(0)) / wells.std(0)


own = ERMClassifier().fit(np.concatenate([standardised(p) for p in plates]), y)
erm = ERMClassifier().fit(X, y)
dare = DAREClassifier().fit(X, y, domains=number)
ways = {
    "standardised by plate": lambda wells: own.predict(standardised(wells)),
    "ERM": erm.predict,
    "DARE": dare.predict,
}

# %%
# Two kinds of new plates
# -----------------------
# On the first half of the wells are hits, the left half as on a plate of controls; on
# the second, from a screen, one well in eight. 50 new plates of each kind:

controls, screen = (np.arange(96) % 12 < 6).astype(int), some(1 / 8)
kinds, scores = {"controls": controls, "screen": screen}, {}
for kind, truth in kinds.items():
    new = [plate(truth) for _ in range(50)]
    for way, predict in ways.items():
        scores[kind, way] = np.mean([np.mean(predict(p) == truth) for p in new])
        print(f"{kind:9} {way:22} {100 * scores[kind, way]:.1f} %")

# %%
# A plate of each kind. Filled wells are predicted hits; a cross marks a wrong
# prediction, and the percentage is the mean over 50 plates. Standardised by its own
# wells, half of any plate looks like hits. DARE uses a well as it is, the first one of
# a plate as well as the last. So does plain logistic regression (ERM), and it is no
# worse here: from eight plates it learns well enough that offsets say nothing. The
# lesson of this picture is what not to do.

column, row = np.arange(96) % 12, np.arange(96) // 12
colors = {"standardised by plate": "C1", "ERM": "0.42", "DARE": "C0"}
fig, axes = plt.subplots(2, 3, figsize=(6.5, 3.9))
for line, (kind, truth) in zip(axes, kinds.items(), strict=True):
    wells = plate(truth)
    for ax, (way, predict) in zip(line, ways.items(), strict=True):
        said, color = predict(wells), colors[way]
        for hit, face in ((0, "0.93"), (1, color)):
            chosen = said == hit
            ax.scatter(column[chosen], row[chosen], s=72, color=face, linewidths=0)
        wrong = said != truth
        ax.scatter(
            column[wrong], row[wrong], s=26, marker="x", color="black", linewidths=1.2
        )
        if kind == "controls":
            ax.set_title(way, color=color, pad=20)
        ax.text(
            0,
            1.02,
            f"{kind}: {100 * scores[kind, way]:.0f} %",
            size=9,
            transform=ax.transAxes,
        )
        ax.set(xlim=(-0.7, 11.7), ylim=(7.7, -0.9), aspect="equal")
        ax.set_axis_off()
plt.show()
