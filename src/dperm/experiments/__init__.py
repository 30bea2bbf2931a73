"""From a grid to rows: plan, units, tuning, sweeps, figures, keys."""

IN_KEYS = "names"
