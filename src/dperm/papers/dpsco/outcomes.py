"""What the sweeps left, as figures and tables read it."""

from __future__ import annotations

import math

import pandas as pd

from dperm.core.experiment import results, schema
from dperm.papers.dpsco.instances import EASY, worst


def together(config: schema.Config, product: schema.Product) -> pd.DataFrame:
    """All sweeps of a product in one table, with the share of the initial risk left."""
    tables = [results.load_sweep(config, name) for name in product.sweeps]
    table = pd.concat(tables, ignore_index=True)
    return table.assign(share=table["excess"] / table["initial"])


def instanced(config: schema.Config, product: schema.Product) -> pd.DataFrame:
    """As ``together``, with ``instance``; of a class the worst bias at each size."""
    tables = [results.load_sweep(config, name) for name in product.sweeps]
    parts = [
        worst(table) if "bias" in table else table.assign(instance=EASY)
        for table in tables
    ]
    table = pd.concat(parts, ignore_index=True)
    return table.assign(share=table["excess"] / table["initial"])


def chosen(config: schema.Config, product: schema.Product) -> pd.DataFrame:
    """Rows of the product's sweeps for its epsilon and calibration."""
    table = together(config, product)
    epsilon = float(product.options.get("epsilon", 1.0))
    kind = "none" if math.isinf(epsilon) else product.calibration
    return table[(table["epsilon"] == epsilon) & (table["calibration"] == kind)]
