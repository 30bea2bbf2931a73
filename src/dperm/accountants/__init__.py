"""Accountants of further releases, and of the best of a random number of runs."""
