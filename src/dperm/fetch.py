"""Fetch the data set of a problem.

``python -m dperm.fetch problem=california_norm``
"""

from dperm.experiments.dataset import fetch
from dperm.stage import main

if __name__ == "__main__":
    main(fetch)
