"""Maranjyan et al. 2024 (DP-SkGD)."""
