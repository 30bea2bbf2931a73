"""From a grid to rows: plan, tasks, tuning, sweeps, figures, keys."""

IN_KEYS = "names"
