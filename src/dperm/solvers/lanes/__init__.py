"""Batched solvers but DP-CD; :mod:`dperm.core.lanes` defines their interface."""
