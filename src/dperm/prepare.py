"""Prepare the arrays of a problem.

``python -m dperm.prepare problem=california_norm``
"""

from dperm.experiments.dataset import prepare
from dperm.stage import main

if __name__ == "__main__":
    main(prepare)
