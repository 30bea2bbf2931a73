"""Functions for figures, tables and sweeps that any paper may name."""

from dperm.extras import require

IN_KEYS = "settings"
require("pipeline", __name__)
