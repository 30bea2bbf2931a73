"""Tune a solver on a problem over the grid of a paper: ``python -m dperm.tune paper=dpcd problem=california_norm solver=dp_cd``."""

from dperm.experiments.tuning import tune
from dperm.stage import main

if __name__ == "__main__":
    main(tune)
