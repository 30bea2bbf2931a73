"""Tune a solver on a problem over the grid of a paper.

``python -m dperm.tune problem=... solver=...``
"""

from dperm.experiments.tuning import tune
from dperm.stage import main

if __name__ == "__main__":
    main(tune)
