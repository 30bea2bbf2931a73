"""Solvers of all families; DP-CD is in :mod:`dperm.solvers.batched`."""
