"""The stages: from a configuration to results, figures and tables."""

IN_KEYS = "names"
