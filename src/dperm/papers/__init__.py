"""The papers, one folder each: what only that paper needs.

A paper of the reader's own lies in ``conf/paper/<name>/`` of the own folder, modules
beside the YAML, and is found as ``dperm.papers.<name>`` as well.
"""

from dperm import locate


def look_in_own() -> None:
    """Find papers in the reader's own folder too."""
    own = locate.own_conf()
    if own is not None and str(own / "paper") not in __path__:
        __path__.append(str(own / "paper"))


look_in_own()
