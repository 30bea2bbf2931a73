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
# The table also says how much its advice costs on data that it has not seen: the error
# of the advised method over the least error of all, with the data set left out.

rows = choosing.advice()
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
labels = [f"{r['loss']}, {r['from']} to {r['to']}" for r in rows]
places = np.arange(len(rows))
axes.barh(places, [float(r["left_out"]) for r in rows])
axes.set_yticks(
    places,
    [f"{a}: {r['methods'].split()[0]}" for a, r in zip(labels, rows, strict=True)],
)
axes.axvline(1.0, color="0.3")
axes.set(xlabel="error of the advised method over the least error")
