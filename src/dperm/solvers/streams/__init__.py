"""Solvers that read each record of a stream once."""
