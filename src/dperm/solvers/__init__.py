"""Solvers of all families; DP-CD is in :mod:`dperm.core.lanes`."""
