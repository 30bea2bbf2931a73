"""Data in, answer out, without a paper's YAML: ``dperm try`` and ``dperm.fit``.

:mod:`.arrays` makes a problem of arrays, :mod:`.methods` finds a private method by its
name. :mod:`.asked` reads what follows ``dperm try``, :mod:`.files` the data, and
:mod:`.command` compares several methods at an equal true epsilon. :mod:`.estimators`
fits one from Python, by scikit-learn's conventions.
"""
