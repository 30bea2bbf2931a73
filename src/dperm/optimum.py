"""Find and certify the non-private optimum.

``python -m dperm.optimum problem=california_norm``
"""

from dperm.experiments.dataset import optimum
from dperm.stage import main

if __name__ == "__main__":
    main(optimum)
