"""Privacy audit: checks that try to catch a solver that spends more than it states.

A solver is a *subject* (:mod:`.subjects`): a run on chosen records under chosen noise,
and what becomes known after each step. A *ladder* is the list of an audit's checks for
one solver, and a *rung* is one check (:mod:`.rungs`), which sees the subject only.
Broken mechanisms (:mod:`.ladder`) show that the rungs catch what they are meant to.
"""
