"""Figures, one file per paper; they read results and never solve."""
