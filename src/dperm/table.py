"""Make the tables of a paper: ``python -m dperm.table product=table1``."""

from dperm.experiments.products import table
from dperm.stage import main

if __name__ == "__main__":
    main(table)
