"""Files written whole or not at all, locks, stored settings, the provenance of rows.

Settings are stored: a stage that was killed, or whose grid grew, computes only the
rest. A finished block of settings is a part, ``<identity>-<code>-<points>.parquet`` in
the folder ``parts``. The identity is a digest of everything that determines its
rows, except the grid point and the code. The code is a digest of the functions that
made the rows. ``dperm accept-code`` finds parts of older code by their identity.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from dperm import __version__

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
POINT = ["step", "clip"]
DIGITS = 10  # of a real number in a CSV file
ROWS = b"dperm.rows"  # key of a Parquet file's metadata
NODE = platform.node() or "here"
_PROCESS_LOCKS: list[Any] = []  # locks held until the process ends


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary name next to ``path``: renamed to it at the end, removed on failure.

    Temporary files that dead processes of this machine left there are removed too.

    Raises OSError if it cannot be written; the text names ``path``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _tidy(path)
    beside = path.with_name(f".{path.stem}.{NODE}.{os.getpid()}{path.suffix}")
    try:
        yield beside
        beside.replace(path)
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error}") from error
    finally:
        beside.unlink(missing_ok=True)


def _tidy(path: Path) -> None:
    start = f".{path.stem}.{NODE}."
    for beside in path.parent.glob(f"{start}*{path.suffix}"):
        owner = beside.name.removeprefix(start).removesuffix(path.suffix)
        try:
            os.kill(int(owner), 0)  # does nothing to a process that runs
        except ProcessLookupError:
            beside.unlink(missing_ok=True)
        except (
            ValueError,
            OSError,
        ):  # no process's file, or that of another user
            continue


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a Parquet file, whole or not at all; it holds a digest of its rows."""
    from pyarrow import Table, parquet  # 0.5 s, which few commands need

    stored = Table.from_pandas(table, preserve_index=False)
    rows = digest_rows(stored.to_pandas(use_threads=False))
    noted = {**(stored.schema.metadata or {}), ROWS: rows}
    with whole(path) as beside:
        stored = stored.replace_schema_metadata(noted)
        parquet.write_table(stored, beside, write_page_checksum=True)


def digest_rows(table: pd.DataFrame) -> str:
    """SHA-256 over the ordered rows of a table and the names of its columns."""
    import pandas as pd

    rows = pd.util.hash_pandas_object(table, index=False).to_numpy("<u8")
    names = ",".join(map(str, table.columns))
    return hashlib.sha256(names.encode() + rows.tobytes()).hexdigest()


def read_table(path: Path) -> pd.DataFrame:
    """Read a Parquet file of ``write_table``; check its checksums and its rows.

    Raises
    ------
    FileNotFoundError
        If it does not exist.
    ValueError
        If it is damaged, or its rows were changed after they were written.
    """
    from pyarrow.parquet import read_schema

    again = "delete it and run again; finished settings are kept"
    # Arrow opens files without Python, which else tells who listens
    sys.audit("open", str(path), "rb", os.O_RDONLY)
    try:
        table = unthreaded(path)
        noted = read_schema(path).metadata or {}
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{path}: no such file; `dperm {path}` runs all that makes it"
        ) from error
    except (
        OSError,
        ValueError,
    ) as error:  # pyarrow's errors are of these kinds
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's: not permitted, a failing disk
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is damaged ({reason}): {again}") from error
    if noted.get(ROWS) != digest_rows(table).encode():
        raise ValueError(
            f"{path} was changed after it was made, or made by an old version: {again}"
        )
    return table


def unthreaded(path: Path | IO[bytes]) -> pd.DataFrame:
    """Read a Parquet file without Arrow's threads.

    A thread that is still alive when Python exits aborts the process (3 of 40 did under
    load), and the results of the job are lost.
    """
    from pyarrow.parquet import ParquetFile

    options = {"page_checksum_verification": True, "pre_buffer": False}
    with ParquetFile(path, **options) as stored:
        return stored.read(use_threads=False).to_pandas(use_threads=False)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a CSV file by ``as_csv``, whole or not at all."""
    write_text(path, as_csv(table))


def as_csv(table: pd.DataFrame) -> str:
    """A table as text, its numbers in ``DIGITS`` digits.

    The last bits of numbers differ between machines, but rarely change these digits: a
    number halfway between two decimals may differ by one unit of the last digit.
    """

    def cut(cell: Any) -> Any:  # a cell of a column that has texts or gaps too
        is_number = isinstance(cell, float) and cell == cell
        return f"{cell:.{DIGITS}g}" if is_number else cell

    mixed = table.select_dtypes(include="object").columns
    texts = table.assign(**{name: table[name].map(cut) for name in mixed})
    return texts.to_csv(index=False, float_format=f"%.{DIGITS}g")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


def read_json(
    path: Path,
    remedy: str = "delete it and run again",
    content_type: type = dict,
) -> Any:
    """Read a JSON file with a dictionary, or with a value of another ``content_type``.

    Raises
    ------
    FileNotFoundError
        If it does not exist.
    ValueError
        If it is damaged; the text names the file and the ``remedy``.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, content_type):
            raise ValueError(
                f"expected a JSON {content_type.__name__}, found {content!r:.40}"
            )
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}): {remedy}") from error
    return content


def known_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON dictionary; None if the file is missing, damaged or no dictionary."""
    try:
        return read_json(path)
    except (OSError, ValueError):
        return None


def digest(value: Any) -> str:
    """A short SHA-256 of a JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def read_or_drop(path: Path) -> pd.DataFrame | None:
    """Read a part; None if missing, damaged or changed, and the file is deleted."""
    try:
        return read_table(path)
    except FileNotFoundError:
        return None
    except ValueError as error:
        log.warning("dropped: %s", error)
        path.unlink(missing_ok=True)
        return None


# --- locks: the kernel releases one when its process ends, however it ends ------------


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, waiting for any other process that holds it.

    A job that outlived its Snakemake may hold it. When that job ends, its settings are
    stored, and the waiting job reuses them.
    """
    path = folder / ".lock"
    lock = _taken(path)
    if lock is None:
        log.warning(
            "%s: waiting for another dperm process%s", folder, _who(path)
        )
        lock = _taken(path, timeout=-1)
    try:
        yield
    finally:
        lock.release()


def lock_results(name: str) -> None:
    """Take a lock until this process ends.

    Raises
    ------
    RuntimeError
        If another process holds the lock.
    """
    path = Path(name)
    lock = _taken(path)
    if lock is None:
        raise RuntimeError(
            f"another pipeline runs in {path.absolute().parent.parent}{_who(path)}: "
            "wait for it, or run in another folder with --directory"
        )
    _PROCESS_LOCKS.append(lock)


def _taken(path: Path, timeout: float = 0) -> Any:
    """The lock of a file, signed; None if another process holds it."""
    from filelock import FileLock, Timeout  # an extra, not needed by fits

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except Timeout:
        return None
    path.write_text(f"{os.getpid()} on {NODE}", encoding="utf-8")
    return lock


def _who(path: Path) -> str:
    owner = path.read_text(encoding="utf-8")[:200]
    return f" (process {owner})" if owner else ""


# --- stored settings ------------------------------------------------------------------


class Key(NamedTuple):
    """Digests of everything that determines the rows of a part."""

    identity: str
    code: str

    def __str__(self) -> str:
        """The text in file names and in the column ``config_digest``."""
        return f"{self.identity}-{self.code}"


class Parts:
    """The parts of one (paper, problem, solver), or of one sweep."""

    def __init__(self, folder: Path):
        self.folder = folder / "parts"

    def read(self, key: Key) -> pd.DataFrame | None:
        """All settings of a key, each once, or None; damaged parts are deleted."""
        import pandas as pd

        tables = [
            table
            for path in sorted(self.folder.glob(f"{key}-*.parquet"))
            if (table := read_or_drop(path)) is not None
        ]
        if not tables:
            return None
        rows = pd.concat(tables, ignore_index=True)
        rows = rows[
            ~rows.duplicated([*POINT, "replicate", "checkpoint"])
        ].reset_index(drop=True)
        return rows.assign(config_digest=str(key))

    def write(self, key: Key, rows: pd.DataFrame) -> None:
        """Store the rows of a finished block."""
        points = rows[POINT].drop_duplicates().to_numpy().tolist()
        self.keep(f"{key}-{digest(points)}", rows)

    def keep(self, name: str, rows: pd.DataFrame) -> None:
        """Store rows under a name."""
        write_table(self.folder / f"{name}.parquet", rows)

    def named(self) -> dict[str, Path]:
        """The files by their names; for a sweep, a point's key."""
        return {
            path.stem: path
            for path in sorted(self.folder.glob("[!.]*.parquet"))
        }


# --- provenance ---------------------------------------------------------------------


@functools.cache
def commit() -> str:
    """The commit of the source tree, with ``+`` if changed since; or the version."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return f"v{__version__}"

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "conf")
    return (git("rev-parse", "--short=12", "HEAD") or "none") + (
        "+" if changed else ""
    )


@functools.cache
def versions() -> str:
    """Versions of Python, this package and libraries that affect the numbers."""
    packages = ("numpy", "scipy", "numba")
    names = [f"python {platform.python_version()}", f"dperm {__version__}"]
    return ", ".join(names + [f"{name} {version(name)}" for name in packages])
