"""Solvers of lanes beyond the core's: what :mod:`dperm.core.lanes` asks for."""
