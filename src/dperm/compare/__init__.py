"""Methods on one problem at one true epsilon: ``dperm try`` and ``dperm.fit``.

:mod:`.contestants` finds a method by its name and puts it on a problem, :mod:`.contest`
tunes it and runs it afresh. :mod:`.run` compares several of them on
data of :mod:`.sources`; :mod:`.results` has its table, words and figure.
:mod:`.request` reads what follows ``dperm try``. :mod:`.estimators` fits one method
from Python, by scikit-learn's conventions.
"""

TUNINGS = ("default", "ten", "grid", "paid")  # what each is: dperm.compare.contest
