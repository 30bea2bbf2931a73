"""Digests of code, locks, folders written whole."""
