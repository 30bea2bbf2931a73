"""Whole files, locks, lanes that are kept, digests of code, provenance."""
