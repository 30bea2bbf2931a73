"""Audit of other people's code: any ``fit(X, y, seed)`` against its stated epsilon.

Nothing is known of the function but what it returns and, where it draws from numpy's
generators, its noise (:mod:`.recording`). Neighbours that a proof would name
(:mod:`.domain`) are tried with the same noise; where the output is affine in it, its
law and so its epsilon follow exactly (:mod:`.affine`); everywhere else events are
chosen on some runs and counted on others (:mod:`.events`). :mod:`.search` puts the
three together, :mod:`.command` is ``dperm audit module:function``.
"""
