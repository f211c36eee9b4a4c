"""
A picture in one line
=====================

Every picture that one needs of heads and domains is one call: heads against each other
on domains that were held out, and five displays in scikit-learn's manner. Here they all
are, on the same data: which head to take, where it is weak, how sure it may be of
itself, how many rows it takes to adapt, how far to shrink, and what adapting does.
"""

import warnings

import matplotlib.pyplot as plt

from skdare import DAREClassifier, DAREClassifierCV, compare
from skdare.datasets import load_digit_domains
from skdare.displays import (
    AdaptationCurveDisplay,
    DomainCalibrationDisplay,
    DomainPairDisplay,
    DomainScoreDisplay,
    ShrinkagePathDisplay,
)

# %%
# Which head?
# -----------
# The digits 0 to 3 of scikit-learn's set, in four styles. ``compare`` holds out each
# style in turn, fits every head to the other three, and scores it on the fourth: names
# of the bench and estimators of any library, as you like. Print it for the advice and
# the table; ``frame()`` has all scores. Open circles are the styles, dots and bars the
# mean over them and its interval.

# All styles have the same classes, and the fitted ones are nearly without error.
warnings.simplefilter("ignore", UserWarning)
digits = load_digit_domains(n_classes=4)
X, y, style = digits.X, digits.y, digits.domains

heads = ["erm", "dare", "adapted", DAREClassifierCV()]
comparison = compare(heads, X, y, domains=style, name="digits")
print(comparison.verdict)
comparison.plot()

# %%
# Where is it weak?
# -----------------
# One head, fitted without the tilted digits, and its score on each style. Bars are
# 95 % intervals over the rows of a style; displays of the same domains can share axes.
# The three styles that it was fitted to look easy, and only ``tilted`` shows what a
# new style costs. Adapted to ``tilted`` it is better there, and of little use
# elsewhere: an adapted head is for one domain.

new = style == "tilted"
head = DAREClassifierCV().fit(X[~new], y[~new], domains=style[~new])
shown = DomainScoreDisplay.from_estimator(head, X, y, domains=style, name="DARE-CV")
adapted = head.adapt(X[new])
DomainScoreDisplay.from_estimator(
    adapted, X, y, domains=style, name="adapted to tilted", ax=shown.ax_
)

# %%
# How sure may it be of itself?
# -----------------------------
# Where a line lies below the diagonal, the head is right less often than it believes.
# On the new style it is far too sure of itself.

DomainCalibrationDisplay.from_estimator(head, X, y, domains=style, name="DARE-CV")

# %%
# How many rows does adapting take?
# ---------------------------------
# Half of the new style is scored, and more and more of the other half is adapted to,
# without its labels. The band reaches from the worst to the best of five draws.

AdaptationCurveDisplay.from_estimator(head, X[new], y[new], name="tilted digits")

# %%
# How far to shrink?
# ------------------
# ``DAREClassifier`` has one shrinkage, and this is what it does to the score on styles
# that were left out.

dare = DAREClassifier(adaptation="centered")
ShrinkagePathDisplay.from_estimator(
    dare, X, y, domains=style, shrinkages=(0.01, 0.1, 0.5, 0.9, 1.0)
)

# %%
# What does adapting do?
# ----------------------
# Two styles before and after the adjustment that ``adapt`` makes, each panel in the
# plane in which the two differ most. The means are on top of each other afterwards,
# and the spreads are more alike.

dare.set_params(shrinkage=0.1).fit(X, y, domains=style)
fig, axes = plt.subplots(1, 2, figsize=(6.5, 3.4))
DomainPairDisplay.from_estimator(dare, "bold", "faint", ax=axes)
plt.show()
