"""Digests of code, and locks."""

IN_KEYS = "names"
