"""One experiment: its configuration, plan, units, tuning and results."""

IN_KEYS = "names"
