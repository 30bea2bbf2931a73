"""Compiled loops, threads and intervals: what any number is made with."""
