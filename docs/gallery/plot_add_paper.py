"""
Add a paper
===========

A paper is one folder with a YAML file and, if it needs them, modules for its own
experiments, figures, tables and claims. :doc:`/howto/paper` shows all files of this
example: the error of a mean that is released many times, with a budget that is split or
composed.
"""

import os
import shutil
import tempfile

import matplotlib.pyplot as plt
import pandas as pd

from dperm.config.config import compose
from dperm.config.locate import home
from dperm.experiments import products, stages

folder = tempfile.mkdtemp()
shutil.copytree(home() / "docs/examples/sixth", folder, dirs_exist_ok=True)
os.chdir(folder)

# ``dperm tiny`` would run all of it. Here are the two stages behind one figure.
config = compose(["paper=tiny", "scale=smoke", "product=rounds"])
stages.sweep(config)
products.figure(config)
data = pd.read_csv("figures/smoke/tiny/rounds.csv")

# %%
# A split budget costs a factor of the number of releases, composition only its square
# root.

figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
for name, curve in data.groupby("algorithm"):
    axes.loglog(curve["x"], curve["mean"], "o-", label=name)
axes.set(xlabel="releases", ylabel="error of one release")
axes.legend()
