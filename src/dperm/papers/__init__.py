"""The papers, one folder each: what only that paper needs.

A paper of the reader's own lies in ``conf/paper/<name>/`` of the own folder, modules
beside the YAML, and is found as ``dperm.papers.<name>`` as well.
"""

from collections.abc import Iterator

from dperm.core.experiment import locate
from dperm.extras import require

require("pipeline", __name__)


class _Folders(list[str]):
    """Where papers are looked for: here, then in the own folder there is by then."""

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        own = locate.own_conf()
        if own is not None:
            yield str(own / "paper")


__path__ = _Folders(__path__)
