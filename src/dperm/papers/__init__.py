"""The papers, one folder each: what only that paper needs.

A paper of the reader's own lies in ``conf/paper/<name>/`` of the own folder, modules
beside the YAML, and is found as ``dperm.papers.<name>`` as well.
"""

from dperm import locate


def look_in_own() -> None:
    """Find papers in the reader's own folder too."""
    for folder in locate.conf_dirs()[:-1]:
        if str(folder / "paper") not in __path__:
            __path__.append(str(folder / "paper"))


look_in_own()
