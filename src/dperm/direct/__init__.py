"""Data in, answer out, without a paper's YAML: ``dperm try`` and ``dperm.fit``.

:mod:`.arrays` makes a problem of arrays, :mod:`.methods` finds a private method by its
name, :mod:`.command` compares several on one file at an equal true epsilon, and
:mod:`.estimators` fits one from Python, by scikit-learn's conventions.
"""
