"""
Is this published epsilon right?
================================

A paper writes: *Gaussian noise of multiplier 1.1 for 5000 steps, batches of 256 of 60
000 records, delta 1e-5.* The answer depends on the neighbouring relation. The
multiplier is relative to the clip C of one record. Adding a record moves a sum of
clipped gradients by C, replacing one moves it by 2C.
"""

import matplotlib.pyplot as plt

from dperm.privacy import Ledger, SampledGaussian, epsilon

STEPS, BATCH, RECORDS, DELTA = 5000, 256, 60_000, 1e-5
SOURCE = "as published"


def ledger(sensitivity, multiplier, steps=STEPS):
    """All releases of a run: sensitivity and noise scale in units of C."""
    named = ("C", SOURCE, BATCH, RECORDS)
    return Ledger((SampledGaussian(sensitivity, multiplier, steps, *named),))


# %%
# The usual formula prices the first case. The bound that holds when a record is
# *replaced*, and the batch has a fixed size, is several times larger.

published = epsilon(ledger(1.0, 1.1), DELTA, "published")
replaced = epsilon(ledger(2.0, 1.1), DELTA, "tight")
print(f"formula, one record added or removed: epsilon = {published:.2f}")
print(f"tight bound, one record replaced:     epsilon = {replaced:.2f}")

# %%
# Neither number is wrong. A paper must say which of the two it means.

noise = [0.9, 1.1, 1.5, 2.0, 3.0, 4.0]
figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
for label, size, accountant in (
    ("added or removed, usual formula", 1.0, "published"),
    ("replaced, tight bound", 2.0, "tight"),
):
    costs = [epsilon(ledger(size, sigma), DELTA, accountant) for sigma in noise]
    axes.plot(noise, costs, "o-", label=label)
axes.set(xlabel="noise multiplier", ylabel="epsilon", yscale="log")
axes.legend()
