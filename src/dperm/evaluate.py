"""Run the tuned settings on fresh seeds.

``python -m dperm.evaluate problem=... solver=...``
"""

from dperm.experiments.evaluation import evaluate
from dperm.stage import main

if __name__ == "__main__":
    main(evaluate)
