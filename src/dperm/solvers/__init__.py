"""Solvers of further families; the lanes are in the core."""
