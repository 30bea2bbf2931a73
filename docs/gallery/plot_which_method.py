"""
Which method suits my data?
===========================

The arena compares private methods on many problems at one true epsilon. What it found
is shipped with the package: for each loss and each value of n epsilon / p, the methods
in the order to try them. ``solver="auto"``, the default, takes the first that can solve
the problem. The choice reads no record, so it costs nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

from dperm.compare import choosing

for loss, quadratic in (("logistic", False), ("least squares", True)):
    for n in (500, 5000, 500_000):
        first, second, *_ = choosing.order(n, 20, quadratic, epsilon=1.0)
        print(f"{loss}, n = {n}, p = 20, epsilon 1: {first}, then {second}")

# %%
# The table also says how much its advice costs: the error of the advised method over
# the least error of all methods, as a mean over problems. On a data set that the table
# has not seen it can cost much more, because few data sets are that large.

rows = choosing.advice()
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
labels = [
    f"{r['loss']}, {r['from']} to {r['to']}: {r['methods'].split()[0]}" for r in rows
]
places = np.arange(len(rows))
for name, key, mark in (
    ("data sets of the table", "regret", "o"),
    ("a new data set", "left_out", "x"),
):
    axes.plot([float(r[key]) for r in rows], places, mark, label=name)
axes.set_yticks(places, labels)
axes.axvline(1.0, color="0.3")
axes.set(xlabel="error over the least error")
figure.legend(loc="outside upper center", ncols=2)
