"""Mangold et al. 2022 (DP-CD)."""
