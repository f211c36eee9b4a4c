"""
Heads compared on digits in four styles
=======================================

Train on three styles of handwriting, predict the fourth. Every head solves its own
regression on the same 64 pixels with the same ridge; which one carries over?
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdare import (
    DAREClassifier,
    ERMClassifier,
    GroupDROClassifier,
    IRMClassifier,
    LabelShiftWarning,
)
from skdare.datasets import load_digit_domains

# %%
# Four styles of the same ten digits
# ----------------------------------
# scikit-learn's digits, dealt to four styles: as they are, tilted by 20 degrees, faint
# on grey, and bold. No image is in two styles.

digits = load_digit_domains()
X, y, style = digits.X, digits.y, digits.domains
styles = ["plain", "bold", "faint", "tilted"]
fig, axes = plt.subplots(1, 4, figsize=(6.5, 1.9))
for ax, name in zip(axes, styles, strict=True):
    threes = X[(style == name) & (y == 3)]
    ax.imshow(threes[0].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.set_title(name)
    ax.set_axis_off()

# %%
# Hold each style out
# -------------------
# ``erm`` is plain logistic regression. ``groupdro`` and ``irm`` are other answers to
# the same question. ``dare`` has never seen the held-out style; ``adapted`` has seen
# its images, but no labels. That is more than the others get, so it is not quite their
# competitor. (``adapt`` warns that hardly any faint image is predicted as a 1. We
# dealt the images, so we know that the ones are there, and that the prediction is what
# is wrong.)

warnings.simplefilter("ignore", LabelShiftWarning)
heads = {
    "erm": ERMClassifier(),
    "irm": IRMClassifier(),
    "groupdro": GroupDROClassifier(),
    "dare": DAREClassifier(adaptation="centered"),
}
right = {}
for held_out in styles:
    train, test = style != held_out, style == held_out
    for name, head in heads.items():
        head.fit(X[train], y[train], domains=style[train])
        right[name, held_out] = head.predict(X[test]) == y[test]
    adapted = heads["dare"].adapt(X[test])
    right["adapted", held_out] = adapted.predict(X[test]) == y[test]

for name in (*heads, "adapted"):
    means = [right[name, held_out].mean() for held_out in styles]
    print(
        f"{name:9}",
        *[f"{100 * m:5.1f} %" for m in means],
        f"   mean {100 * np.mean(means):.1f} %",
    )

# %%
# Who wins, and by how much
# -------------------------
# Bars are 95 % intervals over the images of the held-out style. They do not say how
# another style would turn out: for that there are four points and no more. Where the
# style is near the others (plain) heads hardly differ. Where it is far (tilted, faint)
# they do, and the unlabelled images are worth more than the choice of a head.

# sphinx_gallery_thumbnail_number = 2
colors = {"erm": "0.42", "irm": "C3", "groupdro": "C4", "dare": "C0", "adapted": "C1"}
markers = dict(zip(colors, "osDvo", strict=True))
fig, ax = plt.subplots(figsize=(6.5, 4.4))
for row, held_out in enumerate(styles):
    for k, (name, color) in enumerate(colors.items()):
        hits = 100 * right[name, held_out]
        at, half = row + 0.14 * (k - 2), 1.96 * hits.std() / np.sqrt(len(hits))
        ax.plot([hits.mean() - half, hits.mean() + half], [at, at], color=color, lw=1.6)
        look = {"mec": "white", "ms": 9, "label": name if row == 0 else None}
        ax.plot(hits.mean(), at, markers[name], color=color, **look)
ax.set(yticks=range(4), yticklabels=styles, ylim=(3.5, -0.5), xlim=(None, 100))
ax.spines["left"].set_visible(False)
ax.tick_params(axis="y", length=0, labelsize=11)
ax.hlines(
    np.arange(3) + 0.5, 0, 1, transform=ax.get_yaxis_transform(), color="0.88", lw=0.7
)
ax.grid(axis="x")
ax.set_title("Accuracy on the style that was held out (%)", pad=26)
ax.legend(
    loc="lower left",
    bbox_to_anchor=(-0.02, 1.0),
    ncols=5,
    columnspacing=1.2,
    handletextpad=0.1,
)
plt.show()
