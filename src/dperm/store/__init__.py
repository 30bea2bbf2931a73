"""Digests of code, folders that appear whole, archives."""
