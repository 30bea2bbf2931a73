"""
Tune privately
==============

Trying several settings and keeping the best reads the data several times. A
``PrivateSearch`` pays for that: it runs a random number of fits and publishes the one
with the least noisy loss, all within one epsilon.
"""

import matplotlib.pyplot as plt
import numpy as np

import dperm

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (20_000, 5))
y = (X @ [2, -1, 0, 0, 1] + rng.logistic(size=20_000) > 0).astype(int)
model = dperm.DPClassifier("dp_gd", bounds=(-1, 1), classes=(0, 1))
penalties = [1e-4, 1e-3, 1e-2, 1e-1]
search = dperm.PrivateSearch(model, {"l2": penalties}, epsilon=1.0, random_state=0)
search.fit(X, y)
print("chosen:", search.best_params_)
print("the whole search:", search.epsilon_)

# %%
# The alternative is to fix the penalty beforehand and to spend the whole epsilon on one
# fit. Both stand beside each other, over ten seeds.

fixed = {
    penalty: [
        dperm.DPClassifier(
            "dp_gd", l2=penalty, bounds=(-1, 1), classes=(0, 1), random_state=seed
        )
        .fit(X, y)
        .score(X, y)
        for seed in range(10)
    ]
    for penalty in penalties
}
searched = [
    dperm.PrivateSearch(model, {"l2": penalties}, random_state=seed)
    .fit(X, y)
    .best_estimator_.score(X, y)
    for seed in range(10)
]
figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
axes.boxplot([*fixed.values(), searched])
axes.set_xticks(range(1, 6), [*(f"{p:g}" for p in penalties), "searched"])
axes.set(xlabel="l2 penalty, at epsilon = 1", ylabel="accuracy")
