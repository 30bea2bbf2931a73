"""
Add a data set
==============

A data set is one YAML file beside the data. :doc:`/howto/data-set` lists its keys.
"""

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from dperm.config.config import compose
from dperm.data import load_prepared
from dperm.experiments import inputs

folder = tempfile.mkdtemp()
os.chdir(folder)
rng = np.random.default_rng(0)
size = rng.uniform(20, 120, 300)
rent = 300 + 9 * size + rng.normal(0, 90, 300)
rows = np.column_stack([size, rng.integers(1, 6, 300), rent]).round(1)
np.savetxt("flats.csv", rows, "%g", ",", header="size,rooms,rent", comments="")
Path("conf/problem").mkdir(parents=True)
Path("conf/problem/flats.yaml").write_text("""
name: flats
dataset:
  name: flats
  sources: [{origin: file, files: [flats.csv]}]
  reader: {format: csv, target: rent}
preparation: {standardize: true}
loss: least_squares
penalty: {l2: 1/n}
privacy: {epsilon: 1.0, delta: 1/n^2}
""")

# %%
# Three stages read it, prepare its arrays and solve it without privacy, with a
# certificate.

os.chdir(folder)
config = compose(["problem=flats"])
for stage in (inputs.fetch, inputs.prepare, inputs.optimum):
    stage(config)
problem = load_prepared("flats", config.data)
print(problem.X.shape, "records and features")

# %%
# From here on every method and every paper's grid can run on it: ``dperm solve
# problem=flats solver=dp_cd``.

figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
axes.plot(problem.X[:, 0], problem.y, ".", markersize=4)
axes.set(xlabel="size, standardised", ylabel="rent")
