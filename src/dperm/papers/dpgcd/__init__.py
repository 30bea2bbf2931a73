"""Mangold et al. 2023 (DP-GCD)."""
