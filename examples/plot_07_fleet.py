"""
A thousand devices, a few numbers each
======================================

One head, a thousand devices in the field, each a domain of its own with its own stream.
A fleet keeps a sketch of every device: its mean and a few directions. How few will do?
"""

import matplotlib.pyplot as plt
import numpy as np

from skdare import DAREClassifier

# %%
# Devices that distort three directions
# -------------------------------------
# 48 features. A device stretches three directions of its own, by a factor of up to
# nine, and leaves the others alone. The head is fitted on 20 devices in the
# laboratory.

rng = np.random.default_rng(0)
d, beta = 48, 0.6 * rng.normal(size=48)


def device(n):
    """Rows of a new device, and their classes."""
    U = np.linalg.qr(rng.normal(size=(d, 3)))[0]
    latent, stretch = rng.normal(size=(n, d)), np.exp(rng.uniform(0.45, 2.25, 3))
    y = (latent @ beta + rng.logistic(size=n) > 0).astype(int)
    return latent + (latent @ U) * (stretch - 1) @ U.T, y


def devices(count, n):
    """Rows of some devices, their classes, and which device each is from."""
    made = [device(n) for _ in range(count)]
    return *(np.concatenate([rows[k] for rows in made]) for k in (0, 1)), np.repeat(
        range(count), n
    )


X, y, number = devices(20, 200)
head = DAREClassifier(shrinkage=0.5).fit(X, y, domains=number)

# %%
# The fleet
# ---------
# A thousand devices send 100 rows each, without labels and in any order, and we score
# the next 50 of each. ``rank`` is the number of directions kept.

X, y, number = devices(1000, 150)
seen, later = (np.tile(np.arange(150) < 100, 1000) == flag for flag in (True, False))
order = rng.permutation(np.flatnonzero(seen))


def by_device(predicted):
    """Accuracy on each device's later rows."""
    return (predicted == y[later]).reshape(1000, 50).mean(1)


as_it_is = by_device(head.predict(X[later]))
ranks, scores, memory = (1, 2, 3, 4, 8), {}, {}
for rank in ranks:
    fleet = head.fleet(rank=rank).partial_fit(X[order], number[order])
    scores[rank] = by_device(fleet.predict(X[later], number[later]))
    memory[rank] = fleet.bytes_per_device
print(fleet)

# %%
# An adapter keeps everything, a d × d matrix for each device:

predicted = [
    head.adapt(rows[:100]).predict(rows[100:]) for rows in X.reshape(1000, 150, d)
]
exact, whole = by_device(np.concatenate(predicted)), 8 * d * d

print(f"head as it is  {100 * as_it_is.mean():.1f} %")
for rank in ranks:
    mean = 100 * scores[rank].mean()
    print(f"fleet, rank {rank}  {mean:.1f} %  {memory[rank]:,} bytes each")
print(f"adapters       {100 * exact.mean():.1f} %  {whole:,} bytes a device")

# %%
# Three directions were distorted, and about three are enough: more rank buys nothing
# here, and the whole matrix of an adapter no more than that. (With little shrinkage,
# and features whose spectrum has no such gap, it would.) On the right every dot is a
# device, jittered a little: most gain, and some lose.

fig, (left, right) = plt.subplots(1, 2, figsize=(6.5, 3.6))
kilobytes = np.array([memory[rank] for rank in ranks]) / 1000
left.plot(
    kilobytes,
    [100 * scores[rank].mean() for rank in ranks],
    "o-",
    color="C1",
    mec="white",
    ms=9,
)
for rank, at in zip(ranks, kilobytes, strict=True):
    left.text(
        at * 1.06, 100 * scores[rank].mean() - 0.22, f"{rank}", color="C1", va="top"
    )
left.text(
    kilobytes[0] * 1.35,
    100 * scores[1].mean() - 0.25,
    "rank of the fleet",
    color="C1",
    va="top",
)
left.plot(whole / 1000, 100 * exact.mean(), "s", color="0.42", mec="white", ms=10)
left.text(
    whole / 1000,
    100 * exact.mean() - 0.3,
    "adapters",
    color="0.42",
    ha="center",
    va="top",
)
left.axhline(100 * as_it_is.mean(), color="C0")
left.text(
    22,
    100 * as_it_is.mean() + 0.08,
    "head as it is",
    color="C0",
    weight="bold",
    ha="right",
)
left.set_xscale("log")
left.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
left.set(xlabel="kB a device", title="Mean accuracy (%)")
left.grid(axis="y")

jitter = rng.uniform(-0.9, 0.9, (2, 1000))
gained = np.mean(scores[4] > as_it_is)
lost = np.mean(scores[4] < as_it_is)
right.plot([45, 100], [45, 100], color="0.75", lw=1)
right.scatter(
    100 * as_it_is + jitter[0], 100 * scores[4] + jitter[1], s=5, alpha=0.45, color="C1"
)
right.text(47, 98, f"{100 * gained:.0f} % gain", color="C1", weight="bold", va="top")
right.text(98, 47, f"{100 * lost:.0f} % lose", color="C1", weight="bold", ha="right")
right.set(xlim=(45, 100), ylim=(45, 100), aspect="equal", xlabel="as it is")
right.set_title("Each device, at rank 4 (%)")
plt.show()
