"""
Add a method
============

A method is one Python module. This one lies in the folder where dperm runs; nothing in
the package changes. :doc:`/howto/algorithm` explains each of its five names.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_diabetes

from dperm.config.locate import home

folder = tempfile.mkdtemp()
shutil.copy(home() / "docs/examples/mine/noisy_gd.py", folder)
os.chdir(folder)
print(Path("noisy_gd.py").read_text(encoding="utf-8").split('"""')[1])

# %%
# ``dperm try`` compares it with others at one true epsilon, on a data set that scikit-
# learn ships.

os.chdir(folder)
load_diabetes(as_frame=True).frame.to_csv("diabetes.csv", index=False)
command = "try diabetes.csv target=target solvers=[noisy_gd,dp_cd,dp_gd] epsilon=1"
done = subprocess.run(
    [sys.executable, "-m", "dperm", *command.split()], capture_output=True, text=True
)
print(done.stdout[-600:] or done.stderr)

# %%
# The table has a row for every method and way of tuning.

os.chdir(folder)
table = pd.read_csv("results/try/diabetes/try.csv")
default = table[table["tuning"] == "default"].set_index("algorithm")
figure, axes = plt.subplots(figsize=(5.5, 2.6), layout="constrained")
axes.barh(default.index, default["mean"])
axes.set(xlabel="excess at epsilon = 1, default settings (1: the best constant)")
