"""Compare or fit private methods at one true epsilon: ``dperm try``, ``dperm.fit``.

:mod:`.contestants` finds a method by its name and applies it to a problem;
:mod:`.contest` tunes it and makes fresh runs. :mod:`.run` compares several methods on
data of :mod:`.sources`; :mod:`.results` makes the table, the text and the figure.
:mod:`.request` parses the command line of ``dperm try``. :mod:`.estimators` fits one
method from Python by scikit-learn's conventions.
"""

TUNINGS = ("default", "ten", "grid", "paid")  # described in dperm.compare.contest
PRIVATE = "private"  # scales, or gaps, that are released within epsilon
