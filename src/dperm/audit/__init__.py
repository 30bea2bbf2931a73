"""Privacy audit: checks that try to catch a solver that spends more than it states.

A solver on small data is a *mechanism* (:mod:`.mechanism`), a function of its records
and its noise. It runs on *pairs* of neighbours (:mod:`.pairs`); a run on one is
repeated on the other by *replay* (:mod:`.replay`) with its releases frozen, which shows
how far the noise has to move. *Checks* (:mod:`.checks`) compare that with the ledger,
and *costs* (:mod:`.costs`) bound epsilon from below. :mod:`.solvers` makes the
mechanisms of every solver, and :mod:`.tables` the tables of ``dperm audit``.

A function of which only the outputs are known (:mod:`.functions`: its neighbours and
its noise) is searched by :mod:`.blackbox` for evidence (:mod:`.proofs`): exact laws, or
counted events. Its command is in :mod:`.command`.
"""
