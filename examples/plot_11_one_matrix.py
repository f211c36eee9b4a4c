"""
A head is one matrix
====================

However it was fitted, a head is one matrix and one intercept on the features as they
are. So it can be looked at, saved to a small file that holds no code, and put in the
place of any linear layer. Here are three of them, as images.
"""

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import skdare
from skdare import DAREClassifier, ERMClassifier, LabelShiftWarning
from skdare.datasets import load_digit_domains

# %%
# Fitted on three styles, adapted to a fourth
# -------------------------------------------
# Digits in four styles. The faint one, at low contrast on a grey ground, is held out.

digits = load_digit_domains()
X, y, style = digits.X, digits.y, digits.domains
train, faint = style != "faint", style == "faint"
warnings.simplefilter(
    "ignore", LabelShiftWarning
)  # the classes are as common in every style
erm = ERMClassifier().fit(X[train], y[train])
dare = DAREClassifier(adaptation="centered").fit(
    X[train], y[train], domains=style[train]
)
heads = {"ERM": erm, "DARE": dare, "adapted": dare.adapt(X[faint])}

for name, head in heads.items():
    by_hand = X[faint] @ head.coef_.T + head.intercept_
    same = np.allclose(by_hand, head.decision_function(X[faint]))
    print(
        f"{name:8} a matrix of {head.coef_.shape}; scores are the product: {same};",
        end=" ",
    )
    print(f"accuracy on faint digits {100 * head.score(X[faint], y[faint]):.1f} %")

# %%
# Save it, load it
# ----------------
# A saved head predicts the same bits. It keeps what it needs to adapt later; with
# ``adaptable=False`` only what it needs to predict.

with tempfile.TemporaryDirectory() as folder:
    for adaptable in (True, False):
        path = Path(folder) / "head.safetensors"
        dare.save(path, adaptable=adaptable)
        loaded = skdare.load(path)
        same = np.array_equal(loaded.decision_function(X), dare.decision_function(X))
        size = path.stat().st_size / 1000
        print(f"adaptable={adaptable}: {size:,.0f} kB, same bits: {same}")

# %%
# Look at it
# ----------
# Above, a faint digit of each kind. Below, the weights for it, on one scale for all
# heads: ink where it is red speaks for the digit, ink where it is blue against it. The
# heads look for the same strokes. But in the faint style a stroke has a quarter of the
# contrast, and moves scores by a quarter; adapting turns the weights up, and takes the
# grey ground into the intercept.

for name, head in heads.items():
    print(f"{name:8} mean size of a weight {np.abs(head.coef_).mean():.2f}")

fig, axes = plt.subplots(4, 10, figsize=(6.5, 2.8), layout="constrained")
fig.get_layout_engine().set(w_pad=0.01, h_pad=0.02, wspace=0, hspace=0)
for digit in range(10):
    first = X[faint & (y == digit)][0].reshape(8, 8)
    axes[0, digit].imshow(first, cmap="gray_r", vmin=0, vmax=1)
    for k, head in enumerate(heads.values(), start=1):
        look = {"cmap": "RdBu_r", "vmin": -4.5, "vmax": 4.5, "interpolation": "bicubic"}
        axes[k, digit].imshow(head.coef_[digit].reshape(8, 8), **look)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
for ax, name in zip(axes[:, 0], ("faint", *heads), strict=True):
    ax.set_ylabel(name, rotation=0, ha="right", va="center", weight="bold")
plt.show()
