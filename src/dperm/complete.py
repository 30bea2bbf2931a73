"""Check that a paper is complete: ``python -m dperm.complete paper=dpcd``."""

from dperm.experiments.completion import complete
from dperm.stage import main

if __name__ == "__main__":
    main(complete)
