"""One experiment: its configuration, build graph, units, tuning and results."""
