"""Solvers of a composite problem: many settings advance together, in lanes."""
