"""Audit of other people's code: any ``fit(X, y, seed)`` against its stated epsilon.

Nothing is known of the function but what it returns and, where it draws from numpy's
generators, its noise. :mod:`.search` tries neighbours with the same noise, computes
laws where it can, and counts events elsewhere.
"""
