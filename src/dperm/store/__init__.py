"""Digests of code, and locks."""
