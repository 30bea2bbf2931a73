"""One fit of a million records: CPU seconds, memory and accuracy, beside other libraries.

``python -m bench.million --diffprivlib /path/to/python`` runs it, where that Python has
diffprivlib, which needs an older scikit-learn than dperm does. Every fit is a process
of its own, which reads the data before the clock starts; the objective of what it ends
with is compared with that of scikit-learn's minimiser. Writes ``results/million.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from tabulate import tabulate

HEAD = ("data", "method", "CPU s", "memory / data", "relative error", "accuracy")
SIZES = {"1e6 x 100": (10**6, 100), "1e5 x 5000, 1 %": (10**5, 5000)}
# A child prints CPU seconds, peak memory above the data's, and its weights.
CHILD = """
import json, sys, time, resource, warnings
import numpy as np
from pathlib import Path
warnings.simplefilter("ignore")
folder, method = Path(sys.argv[1]), sys.argv[2]
if (folder / "X.npz").exists():
    from scipy import sparse
    X = sparse.load_npz(folder / "X.npz")
else:
    X = np.load(folder / "X.npy", mmap_mode="r" if method == "mapped" else None)
y, n, size = np.load(folder / "y.npy"), X.shape[0], 8 * getattr(X, "nnz", X.size)
fit = {FITS}[method]
fit(X[:1000], y[:1000])  # imports, compiled code
peak = Path("/proc/self/clear_refs")
peak.write_text("5")  # the peak from now on
def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))
before, start = memory("VmRSS"), time.process_time()
model = fit(X, y)
spent = time.process_time() - start
held = size if method not in ("mapped", "parquet") else 0
print(json.dumps([spent, (memory("VmHWM") - before + held) / size,
                  model.coef_.ravel().tolist(), float(np.ravel(model.intercept_)[0])]))
"""
OURS = """{
    name: lambda X, y, solver=solver: dperm.fit(
        X, y, solver, classes=(0.0, 1.0), feature_scale=SCALE, random_state=0)
    for name, solver in (("auto", "auto"), ("mapped", "auto"), ("dp_gd", "dp_gd"),
                         ("dp_gram", "dp_gram"), ("dp_cd", "dp_cd"))
}"""
