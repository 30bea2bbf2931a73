"""Lou and Cheung 2020 (DP-BCFW)."""
