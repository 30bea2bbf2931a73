"""Prices of further releases, and intervals of what a ledger costs."""
