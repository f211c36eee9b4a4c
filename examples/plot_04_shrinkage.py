"""
How much to shrink
==================

Whitening divides by variances, and small variances are estimated badly. Shrinkage mixes
each domain's second moment with a multiple of the identity before it is inverted: none
whitens completely, all of it leaves the features as they are but for one scale. What
lies between?
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdare import DAREClassifier, ERMClassifier, LabelShiftWarning
from skdare.datasets import load_digit_domains

# %%
# Four styles of handwriting
# --------------------------
# scikit-learn's digits: as they are, bold, faint and tilted.

digits = load_digit_domains()
X, y, style = digits.X, digits.y, digits.domains
styles = ["plain", "bold", "faint", "tilted"]
warnings.simplefilter(
    "ignore", LabelShiftWarning
)  # the classes are as common in every style

# %%
# A path over the strength
# ------------------------
# One style is held out, for ever stronger shrinkage ρ. Each head is used twice: as it
# is, with the averaged whitening, and adapted to the unlabelled images of the held-out
# style.

strengths = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0])
as_is, adapted, erm = np.empty((4, 11)), np.empty((4, 11)), np.empty(4)
for e, held_out in enumerate(styles):
    train, test = style != held_out, style == held_out
    given = {"X": X[train], "y": y[train], "domains": style[train]}
    erm[e] = ERMClassifier().fit(**given).score(X[test], y[test])
    for k, strength in enumerate(strengths):
        head = DAREClassifier(shrinkage=strength, adaptation="centered", tol=1e-4).fit(
            **given
        )
        as_is[e, k] = head.score(X[test], y[test])
        adapted[e, k] = head.adapt(X[test]).score(X[test], y[test])

print("   ρ    as it is  adapted")
for k, strength in enumerate(strengths):
    means = 100 * as_is[:, k].mean(), 100 * adapted[:, k].mean()
    print(f"{strength:5.3f}   {means[0]:5.1f} %   {means[1]:5.1f} %")
print(f"  ERM   {100 * erm.mean():5.1f} %")

# %%
# Complete whitening costs
# ------------------------
# With little shrinkage both fall. Pixels at the edge of an image hardly vary, and
# dividing by so small a deviation makes their noise as loud as the digit; for a style
# nobody has seen, the deviations are guessed on top of it. Filled dots are the best of
# each path. The default is ρ = 0.9, which rests on more data than these. Open dots are
# ERM, which no shrinkage concerns.

fig, axes = plt.subplots(1, 2, figsize=(6.5, 4.0), sharey=True)
# Even steps of the log odds show both ends of the path; ρ = 1 takes the next place.
odds = np.log10(strengths[:-1] / (1 - strengths[:-1]))
at = np.append(odds, odds[-1] + 0.5)
colors = dict(zip(styles, ("C2", "C4", "C0", "C3"), strict=True))
for ax, scores, title in zip(
    axes, (as_is, adapted), ("as it is", "adapted"), strict=True
):
    for e, name in enumerate(styles):
        ax.plot(at, 100 * scores[e], color=colors[name])
        best = np.argmax(scores[e])
        ax.plot(
            at[best], 100 * scores[e, best], "o", color=colors[name], mec="white", ms=8
        )
        ax.plot(
            at[0] - 0.35,
            100 * erm[e],
            "o",
            mfc="white",
            mec=colors[name],
            mew=1.6,
            ms=7,
        )
        if ax is axes[1]:
            label = {
                "color": colors[name],
                "weight": "bold",
                "va": "center",
                "clip_on": False,
            }
            ax.text(at[-1] + 0.15, 100 * scores[e, -1], name, **label)
    shown = [0, 2, 4, 7, 9, 10]
    ax.set_xticks(at[shown], [f"{strengths[k]:g}" for k in shown])
    ax.axvline(at[-2], ymax=0.94, color="0.75", lw=1, zorder=0)
    ax.set(title=f"{title}: accuracy (%)", xlabel="shrinkage ρ")
    ax.grid(axis="y")
    ax.text(at[0] - 0.35, 104, "ERM", size=9, ha="center", va="top")
    ax.text(at[-2], 104, "default", color="0.4", size=9, ha="center", va="top")
axes[0].set_ylim(10, 104)
plt.show()
