"""Accountants of further releases, and intervals of a ledger's epsilon."""
