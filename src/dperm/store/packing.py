"""Archives: a JSON head that says what is in it, and files."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes whenever it is packed


def pack(path: Path, head: tuple[str, Any], files: Mapping[str, Path]) -> None:
    """Write a ZIP archive; the same files give the same bytes.

    Parameters
    ----------
    path : Path
    head : tuple of str and a JSON value
        The first member: its name, and what it says.
    files : mapping of str to Path
        The other members by name, in this order.
    """
    with zipfile.ZipFile(path, "w") as archive:
        text = json.dumps(head[1], indent=1, sort_keys=True)
        archive.writestr(_member(head[0]), text + "\n")
        for name, file in files.items():
            with (
                open(file, "rb") as source,
                archive.open(_member(name), "w", force_zip64=True) as target,
            ):
                shutil.copyfileobj(source, target, 1 << 20)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info
