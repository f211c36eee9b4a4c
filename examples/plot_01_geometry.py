"""
Whitening, alignment and the constraint, in two dimensions
==========================================================

What domain-adjusted regression does to its rows, one step after the other: whiten every
domain by its own covariance, so that one direction serves all of them; ask that this
direction be blind to the domain means; guess the whitening of a domain nobody has seen.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from skdare import DAREClassifier, ERMClassifier, LabelShiftWarning
from skdare.theory import LatentDomain, LatentModel

# %%
# Three hospitals measure the same thing in their own ways
# --------------------------------------------------------
# The model of the paper: latents ε have a mean of their own in every domain, here
# along the first axis, and a class that depends on ``βᵀε`` with the same β everywhere.
# We never see ε, but ``x = A_e ε`` with a matrix that belongs to the domain.


def stretch(degrees, along, across):
    """A symmetric matrix that scales by two factors along turned axes."""
    t = np.deg2rad(degrees)
    U = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
    return U @ np.diag([along, across]) @ U.T


def sample(*domains, n=400, seed=0):
    """Rows of domains, given as a matrix A and the first entry of a latent mean."""
    made = [LatentDomain(A, np.array([mean, 0.0])) for A, mean in domains]
    return LatentModel(np.array([0.5, 2.5]), made, "classification").sample(
        n, random_state=seed
    )


seen = (
    (stretch(40, 2.0, 0.6), -1.0),
    (stretch(-40, 2.0, 0.6), -0.2),
    (stretch(90, 1.8, 0.6), 1.5),
)
data = sample(*seen)
X, y, hospital = data.X, data.y, data.domains

# %%
# Step 1: whiten each domain by its own covariance
# ------------------------------------------------
# ``adjustments_`` holds the matrices ``W_e = Σ_e^{-1/2}``. The features have two
# dimensions and hundreds of rows, so we whiten completely: ``shrinkage=0`` (the
# default of 0.9 is for features with many more), and ``centered=True`` for
# covariances. The head never makes the whitened rows; we do, to look at them.

options = {"shrinkage": 0.0, "centered": True, "adaptation": "covariance", "l2": 1e-3}
free = DAREClassifier(mean_penalty=0.0, **options).fit(X, y, domains=hospital)
whitened = np.empty_like(X)
for e in free.domains_:
    whitened[hospital == e] = X[hospital == e] @ free.adjustments_[e].dense()
    print(
        f"covariance of whitened hospital {e}:",
        np.cov(whitened[hospital == e].T).round(2).tolist(),
    )

# %%
# In the picture, filled dots are of one class and open dots of the other. The line is
# the best one for that domain alone. As the rows arrive (above), the three lines run
# in three directions. After whitening (below) every domain is a circle, and the lines
# are nearly parallel: what was aligned is not the data but the question.


def draw_rows(ax, rows, labels, color, n=130):
    """Some rows of one domain, and the ellipse of two standard deviations."""
    for label, face in ((0, "none"), (1, color)):
        x0, x1 = rows[:n][labels[:n] == label].T
        ax.scatter(
            x0, x1, s=11, facecolors=face, edgecolors=color, linewidths=0.6, alpha=0.75
        )
    values, U = np.linalg.eigh(np.cov(rows.T))
    angle = np.degrees(np.arctan2(U[1, 1], U[0, 1]))
    width, height = 4 * np.sqrt(values[::-1])
    ax.add_patch(
        Ellipse(rows.mean(0), width, height, angle=angle, fill=False, ec=color, lw=1.8)
    )
    ax.plot(*rows.mean(0), "o", color=color, mec="white", ms=8, zorder=5)


def draw_line(ax, coef, intercept, **look):
    """Where the score ``coefᵀx + intercept`` is zero."""
    coef = np.ravel(coef)
    along = np.array([-coef[1], coef[0]]) / np.linalg.norm(coef)
    foot = -float(np.squeeze(intercept)) * coef / (coef @ coef)
    return ax.axline(foot, foot + along, **look)


colors = ["C2", "C3", "C4"]
fig, axes = plt.subplots(2, 3, figsize=(6.5, 4.4))
views = {"as it arrives": (X, 5.2), "whitened": (whitened, 3.9)}
for row, (name, (rows, half)) in zip(axes, views.items(), strict=True):
    for e, ax in enumerate(row):
        own, labels = rows[hospital == e], y[hospital == e]
        best = ERMClassifier(l2=1e-3).fit(own, labels)
        draw_rows(ax, own, labels, colors[e])
        draw_line(ax, best.coef_, best.intercept_, color="0.1", lw=1.6)
        ax.set(aspect="equal", xlim=(-half, half), ylim=(-0.86 * half, 0.86 * half))
        ax.set_axis_off()
        ax.set_title(f"hospital {e}, {name}", fontsize=9)

# %%
# Step 2: be blind to the domain means
# ------------------------------------
# The whitened means lie along one line. A mean says which hospital a row is from, and
# the mean of the next hospital may be anywhere on that line, or wrongly measured. The
# constraint asks that every mean add nothing to the score; ``mean_penalty`` is how
# strongly. The direction turns until it is orthogonal to the means, and gives up what
# it could have learnt along them.

dare = DAREClassifier(mean_penalty=10.0, **options).fit(X, y, domains=hospital)
for name, head in (("without", free), ("with", dare)):
    scores = (
        np.stack([whitened[hospital == e].mean(0) for e in range(3)])
        @ head.canonical_coef_[0]
    )
    print(
        f"{name:>7} the constraint: direction {head.canonical_coef_[0].round(2)},",
        end=" ",
    )
    print(f"scores of the means {scores.round(2)}")

fig, axes = plt.subplots(1, 2, figsize=(6.5, 2.3))
titles = ("without: the means are told apart", "with: the means look the same")
for ax, title, head, look in zip(
    axes, titles, (free, dare), ("0.42", "C0"), strict=True
):
    for e, color in enumerate(colors):
        mean = whitened[hospital == e].mean(0)
        ax.add_patch(Ellipse(mean, 4, 4, fc=color, alpha=0.12, ec="none"))
        ax.add_patch(Ellipse(mean, 4, 4, fill=False, ec=color, lw=1.5))
        ax.plot(*mean, "o", color=color, mec="white", ms=9, zorder=5)
    draw_line(ax, head.canonical_coef_, 0.0, color=look, lw=2.4)
    arrow = 1.7 * head.canonical_coef_[0] / np.linalg.norm(head.canonical_coef_)
    ax.annotate(
        "", arrow, (0, 0), arrowprops={"arrowstyle": "-|>", "color": look, "lw": 2.4}
    )
    ax.text(arrow[0] + 0.15, arrow[1], "β", color=look, fontsize=13, weight="bold")
    ax.set(title=title, aspect="equal", xlim=(-4.2, 4.2), ylim=(-2.3, 2.5))
    ax.set_axis_off()

# %%
# Step 3: guess for a domain nobody has seen
# ------------------------------------------
# The guess is the mean of the three ``W_e``. Two more hospitals arrive, both with a
# mean further out than any before. The first stretches what the means move along: the
# error that the constraint is made for. The second is turned a little as well, so that
# its mean leaks into the one direction that DARE relies on, and there DARE loses to
# plain logistic regression (ERM). No head that has not seen the domain is safe from
# both. Unlabelled rows mend both: ``adapt`` replaces the guess by the new domain's own
# ``W``. (It warns that the predicted classes are not those it is used to. Here the
# features moved and not the classes; a later example shows what happens when it is the
# classes.)

warnings.simplefilter("ignore", LabelShiftWarning)
erm = ERMClassifier(l2=1e-3).fit(X, y)
arrivals = {
    "stretched along the means": (stretch(0, 3.0, 0.5), 3.0),
    "stretched, and turned by 10 degrees": (stretch(-10, 2.5, 0.7), 3.0),
}

fig, axes = plt.subplots(1, 2, figsize=(6.5, 2.7))
for ax, (name, domain) in zip(axes, arrivals.items(), strict=True):
    new = sample(domain, n=2000, seed=1)
    heads = {
        "ERM": (erm, "0.42"),
        "DARE": (dare, "C0"),
        "adapted": (dare.adapt(new.X), "C1"),
    }
    draw_rows(ax, new.X, new.y, "0.62", n=220)
    for at, (label, (head, color)) in zip(
        (0.02, 0.33, 0.66), heads.items(), strict=True
    ):
        draw_line(ax, head.coef_, head.intercept_, color=color, lw=2.4)
        said = f"{label}\n{100 * head.score(new.X, new.y):.0f} %"
        ax.text(
            at, -0.2, said, color=color, size=12, weight="bold", transform=ax.transAxes
        )
        print(f"{name}: {label} {100 * head.score(new.X, new.y):.1f} %")
    mean = new.X.mean(0)
    ax.set(
        title=name,
        xlim=mean[0] + np.array([-7, 7]),
        ylim=mean[1] + np.array([-4.6, 3.4]),
        aspect="equal",
    )
    ax.set_axis_off()
plt.show()
