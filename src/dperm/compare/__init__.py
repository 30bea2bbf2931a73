"""Fit private methods, and compare them at one true epsilon.

:mod:`.estimators` fits one method from Python by scikit-learn's conventions.
:mod:`.methods` finds a method by its name and puts it on a problem. :mod:`.race` fits
several to one data set, by the estimators, and :mod:`.command` is ``dperm try``.
"""
