"""Make the figures of a paper: ``python -m dperm.figure product=figure1``."""

from dperm.experiments.products import figure
from dperm.stage import main

if __name__ == "__main__":
    main(figure)
