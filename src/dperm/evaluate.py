"""Run the tuned settings on fresh seeds: ``python -m dperm.evaluate paper=dpcd problem=california_norm solver=dp_cd``."""

from dperm.experiments.evaluation import evaluate
from dperm.stage import main

if __name__ == "__main__":
    main(evaluate)
