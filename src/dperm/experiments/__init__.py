"""Experiments: run table, seeds, tuning, evaluation, storage."""
