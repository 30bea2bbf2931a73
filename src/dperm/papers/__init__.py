"""One folder per paper, with the code that only that paper needs.

A user's own paper lies in ``conf/paper/<name>/`` of the own folder, with its modules
next to the YAML, and is imported as ``dperm.papers.<name>`` as well.
"""

from collections.abc import Iterator

from dperm.config import locate
from dperm.extras import require

IN_KEYS = "settings"
require("pipeline", __name__)


class _Folders(list[str]):
    """Folders of papers: this one, then the user's own as it is at each import."""

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        folder = locate.own_conf()
        if folder is not None:
            yield str(folder / "paper")


__path__ = _Folders(__path__)
