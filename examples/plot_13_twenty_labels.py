"""
Twenty labels from a new domain
===============================

A head meets a domain that it was not trained on, and somebody there can label a few
rows. What do twenty labels bring, and does it matter which rows they are of?
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdare import DAREClassifierCV, LabelShiftWarning
from skdare.datasets import load_digit_domains

# %%
# Digits that somebody tilts
# --------------------------
# Handwritten digits in four styles. The head is fitted to three of them, and the tilted
# ones are new. Half of these are there to adapt to, and to label; the other half is
# kept to see what came of it.

data = load_digit_domains()
new = data.domains == "tilted"
head = DAREClassifierCV().fit(data.X[~new], data.y[~new], domains=data.domains[~new])

order = np.random.default_rng(0).permutation(new.sum())
here, later = np.array_split(order, 2)
X, y = data.X[new][here], data.y[new][here]
X_later, y_later = data.X[new][later], data.y[new][later]

# %%
# The same labels, of rows that were suggested and of any
# -------------------------------------------------------
# ``suggest`` names the rows that help most, in order. ``adapt`` takes them all: rows
# without a label say how the domain is measured, and those with one what is what.

warnings.simplefilter("ignore", LabelShiftWarning)
warnings.filterwarnings("ignore", "no labelled row is of class")


def score(rows):
    """Accuracy on later rows after these ones were labelled."""
    labels = np.full(len(y), -1)
    labels[rows] = y[rows]
    return head.adapt(X, labels).score(X_later, y_later)


counts = (10, 20, 30, 50, 70, 100)
suggested = head.suggest(X, counts[-1])
by_suggestion = np.array([score(suggested[:n]) for n in counts])
draws = [np.random.default_rng(seed).permutation(len(y)) for seed in range(5)]
at_random = np.array([[score(draw[:n]) for n in counts] for draw in draws])
as_it_is = head.score(X_later, y_later)
adapted = head.adapt(X).score(X_later, y_later)

print(f"as it is                   {100 * as_it_is:.1f} %")
print(f"adapted, no labels         {100 * adapted:.1f} %")
print(f"20 labels, any rows        {100 * at_random[:, 1].mean():.1f} %")
print(f"20 labels, as suggested    {100 * by_suggestion[1]:.1f} %")

# %%
# The band is the range of five random draws. Labels of suggested rows are worth about
# twice as many of others here, until there are so many that any will do.

fig, ax = plt.subplots()
ax.fill_between(
    counts, 100 * at_random.min(0), 100 * at_random.max(0), color="0.85", lw=0
)
ax.plot(counts, 100 * at_random.mean(0), color="0.42", lw=2)
ax.plot(counts, 100 * by_suggestion, color="C1", lw=2.4, marker="o")
for height, name in ((as_it_is, "as it is"), (adapted, "adapted, no labels")):
    ax.axhline(100 * height, color="0.6", lw=1, ls="--")
    ax.text(counts[-1], 100 * height + 0.8, name, color="0.4", ha="right")
ax.text(12, 100 * by_suggestion[2] + 1.2, "suggested rows", color="C1", weight="bold")
ax.text(52, 100 * at_random.mean(0)[3] - 4.2, "any rows", color="0.42", weight="bold")
ax.set(xlabel="labels of the new domain")
ax.set_title("Accuracy on later rows of the new domain (%)")
ax.grid(axis="y")
plt.show()
