"""Run the sweeps of a paper: ``python -m dperm.sweep paper=... product=...``."""

from dperm.experiments.sweeping import sweep
from dperm.stage import main

if __name__ == "__main__":
    main(sweep)
