"""One experiment: its configuration, plan, units, tuning and results."""
