"""Bundles: the fetched arrays of many data sets in one archive, or its folder.

A bundle holds ``fetched/<data set>/`` as ``dperm.data.fetching`` writes it, record and
arrays, and ``SOURCES.json``: what each data set is, whence it came, its digest. The
mirror setting (``DPERM_MIRROR``) may name the archive or the folder it unpacks to.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dperm.data.archives import unpack
from dperm.store import packing

FOLDER = "fetched"
CONTENTS = "SOURCES.json"


def pack(folders: Mapping[str, Path], contents: Mapping[str, Any], path: Path) -> None:
    """Write a bundle; the same data give the same bytes.

    Parameters
    ----------
    folders : mapping of str to Path
        Fetched folder of each data set by name.
    contents : mapping
        What ``SOURCES.json`` says of each data set.
    path : Path
        Of the ZIP archive.
    """
    files = {
        f"{FOLDER}/{name}/{file.name}": file
        for name, folder in sorted(folders.items())
        for file in sorted(folder.iterdir())
    }
    packing.pack(path, (CONTENTS, contents), files)


def bundled(mirror: str | None, name: str, work: Path) -> Path | None:
    """The folder of a data set in a bundle, unpacked below ``work`` if need be.

    Returns
    -------
    Path or None
        None if the mirror is no bundle or does not hold the data set.

    Raises
    ------
    RefusedError
        If the archive is damaged or has unsafe members.
    """
    if not mirror:
        return None
    if Path(mirror).is_dir():
        folder = Path(mirror) / FOLDER / name
        return folder if folder.is_dir() else None
    if not zipfile.is_zipfile(mirror):
        return None
    with zipfile.ZipFile(mirror) as archive:
        start = f"{FOLDER}/{name}/"
        wanted = [member for member in archive.namelist() if member.startswith(start)]
    found = unpack(Path(mirror), work, wanted) if wanted else []
    return found[0].parent if found else None
