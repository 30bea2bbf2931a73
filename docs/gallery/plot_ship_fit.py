"""
Ship a fit
==========

A fit may be published if nothing in it was read off the data without being paid for.
Here nothing is declared about the columns: their scales are released with noise, within
epsilon, and so is the fit.
"""

import json

import matplotlib.pyplot as plt
import numpy as np

import dperm

rng = np.random.default_rng(0)
units = np.array([1e-6, 1.0, 1e4])
X = rng.normal(size=(20_000, 3)) * units
y = X / units @ [1.0, -2.0, 0.5] + rng.normal(size=20_000)
ends = [(-4 * unit, 4 * unit) for unit in units]
model = dperm.DPRegressor(
    epsilon=1.0, bounds=ends, label_bounds=(-10, 10), random_state=0
).fit(X, y)

# %%
# ``epsilon_`` is a proved upper bound. It lists what it assumes to be
# public, and the ledger has every release behind it.

print(model.solver_)
print(model.epsilon_)
for event in model.epsilon_.ledger.events:
    print("-", event.source)

# %%
# Publish the coefficients and the guarantee. ``random_state`` is fixed here only to
# keep this page the same; leave it out in a real release.

published = {
    "coefficients": model.coef_.tolist(),
    "intercept": float(model.intercept_),
    "guarantee": str(model.epsilon_),
}
print(json.dumps(published, indent=1))
figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
axes.plot(y[:500], model.predict(X[:500]), ".", markersize=3)
axes.axline((0, 0), slope=1, color="0.3")
axes.set(xlabel="label", ylabel="private prediction")
