"""The stages: from a configuration to results, figures and tables."""
