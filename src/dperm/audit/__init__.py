"""Privacy audit: rungs that try to catch a solver spending more than it states.

A solver is a *subject* (:mod:`.subjects`): a run on given records under given noise,
and what becomes known after each step. The rungs (:mod:`.rungs`) see nothing else.
Broken mechanisms (:mod:`.controls`) show that the rungs catch what they are for.
"""
