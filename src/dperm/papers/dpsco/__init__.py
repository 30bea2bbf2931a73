"""Bassily, Guzmán and Nandi 2021 (DP-SCO)."""
