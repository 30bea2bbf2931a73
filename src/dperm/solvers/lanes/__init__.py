"""Solvers of lanes beyond the core; :mod:`dperm.core.lanes` defines their interface."""
