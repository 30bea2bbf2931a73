"""
What does epsilon = 1 cost?
===========================

Privacy costs accuracy. This is how much on a data set of 569 patients with 30 features,
which is small for private learning: the accuracy on held-out patients over five seeds,
as epsilon falls. All of these fits are for study; to publish one, fit once, with
``release=True``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import dperm

X, y = load_breast_cancer(return_X_y=True)
low, high = X.min(axis=0), X.max(axis=0)  # known ranges, in a real study
X = (X - low) / (high - low)
train, test, y_train, y_test = train_test_split(X, y, random_state=0)


def accuracy(epsilon, seed):
    """Of one private fit, on the records that were held out."""
    model = dperm.DPClassifier(
        epsilon=epsilon, bounds=(0, 1), classes=(0, 1), random_state=seed
    )
    return model.fit(train, y_train).score(test, y_test)


# %%
# Without noise (``epsilon=inf``) the same estimator is the reference.

epsilons = [0.1, 0.3, 1, 3, 10, 30]
scores = np.array([[accuracy(e, seed) for seed in range(5)] for e in epsilons])
figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
axes.plot(epsilons, scores.mean(axis=1), "o-", label="private, mean of five fits")
axes.fill_between(epsilons, scores.min(axis=1), scores.max(axis=1), alpha=0.2)
axes.axhline(accuracy(np.inf, 0), color="0.3", label="without noise")
axes.axhline(max(np.mean(y_test), 1 - np.mean(y_test)), color="0.3", linestyle=":",
             label="majority class")  # fmt: skip
axes.set(xscale="log", xlabel="epsilon", ylabel="accuracy")
axes.legend(loc="lower right")
