"""
Anchor regression and DARE, each in its own world
=================================================

Both treat domain means apart, and they want opposite things of them. Anchor regression
weighs the error at the means by γ: a large γ makes predictions right on average in
every domain. DARE asks that predictions not depend on the mean at all, with weight λ,
and whitens. Neither is safer in general: it depends on what moves.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdare import AnchorRegressor, DARERegressor, ERMRegressor
from skdare.datasets import DomainData
from skdare.theory import LatentDomain, LatentModel

rng = np.random.default_rng(0)

# %%
# A world of shifts
# -----------------
# The model of anchor regression: a hidden variable acts on features and target alike,
# so that least squares is biased, and a domain shifts the features in the direction of
# that bias. New domains shift four times as far. The features act on the target in
# that direction too, so the target moves with them.

D, N = 12, 300
hidden = rng.normal(size=D) / np.sqrt(D)
effect = 0.5 * hidden + rng.normal(size=D) / np.sqrt(D)


def shifted(count, size):
    """Domains that differ by a shift."""
    X, y = [], []
    for _ in range(count):
        shift, confounder = size * rng.normal(), rng.normal(size=N)
        rows = (
            rng.normal(size=(N, D))
            + 2 * np.outer(confounder, hidden)
            + 2 * shift * hidden
        )
        X.append(rows)
        y.append(rows @ effect + confounder + 0.3 * rng.normal(size=N))
    return DomainData(np.concatenate(X), np.concatenate(y), np.repeat(range(count), N))


# %%
# A world of distortions
# ----------------------
# The model of the DARE paper: every domain has its own matrix, and in four directions
# a mean. The target depends on what was there before the matrix. New domains are
# distorted four times as much in those directions.

beta = np.concatenate([np.full(4, 0.5), np.full(8, 8**-0.5)]) / np.sqrt(2)


def distorted(count, width):
    """Domains with matrices of their own: log eigenvalues in ± width in one block."""
    domains = []
    for _ in range(count):
        A, b = np.zeros((D, D)), np.zeros(D)
        for part, spread in ((slice(0, 4), width), (slice(4, D), 0.2)):
            U = np.linalg.qr(rng.normal(size=A[part, part].shape))[0]
            A[part, part] = (U * np.exp(rng.uniform(-spread, spread, len(U)))) @ U.T
        b[:4] = 0.75 * rng.normal(size=4)
        domains.append(LatentDomain(A, b))
    return LatentModel(beta, domains, noise=0.3).sample(N, random_state=rng)


worlds = {
    "shifts four times as far": (shifted(6, 1.0), shifted(40, 4.0)),
    "distortions four times as wide": (distorted(6, 0.5), distorted(40, 2.0)),
}

# %%
# A path of each
# --------------
# DARE whitens completely (``shrinkage=0``): there are many rows for twelve features.

penalties = np.array([0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300])
families = {
    "anchor regression, γ": lambda p: AnchorRegressor(gamma=p),
    "DARE, λ": lambda p: DARERegressor(mean_penalty=p, shrinkage=0.0, centered=True),
    "ERM": lambda _: ERMRegressor(),
}
errors = {}
for world, (train, new) in worlds.items():
    for name, make in families.items():
        heads = [
            make(p).fit(train.X, train.y, domains=train.domains) for p in penalties
        ]
        squares = [np.mean((head.predict(new.X) - new.y) ** 2) for head in heads]
        errors[world, name] = np.sqrt(squares)
        print(
            f"{world:31} {name:21}",
            *[f"{e:.2f}" for e in errors[world, name][[0, 4, -1]]],
        )

# %%
# From left to right the means weigh more; at γ = 1 anchor regression is least squares
# (ERM). With shifts it comes down and stays down. DARE passes a point as low, where
# two errors cancel, and then gives up a part of the target that really moves. With
# distortions, holding on to the means makes matters worse, for they are distorted like
# everything else; DARE no longer looks at them.

colors = {"anchor regression, γ": "C4", "DARE, λ": "C0", "ERM": "0.42"}
fig, axes = plt.subplots(1, 2, figsize=(6.5, 3.7))
for ax, world in zip(axes, worlds, strict=True):
    for name, color in colors.items():
        ax.plot(penalties, errors[world, name], color=color, lw=2.6)
        side = (
            "top" if (name == "anchor regression, γ") == (ax is axes[0]) else "bottom"
        )
        at = errors[world, name][-1] + (0.05 if side == "bottom" else -0.12)
        ax.text(330, at, name, color=color, weight="bold", ha="right", va=side)
    ax.set(xscale="log", xlabel="weight of the means, γ or λ", title=world)
    ax.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    ax.grid(axis="y")
axes[0].set_ylim(0, 3.1)
axes[1].set_ylim(0, 2.3)
axes[0].set_ylabel("RMSE on new domains")
plt.show()
