"""What a job reads while it runs, compared with what its key holds.

Settings are seen through a view (:mod:`dperm.config.scope`). Besides, an audit
hook of Python notes the files that are opened, modules among them, and the solvers and
accountants that are looked up by name. What the job's code does not reach, from which
its key is made, ends the job.

Files of this package's code and of installed libraries are left out, and those that
keys hold by their digests: prepared data, rows of the paper, and files below ``conf/``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dperm.config.locate import conf_dirs, own_conf
from dperm.config.scope import NAMES, BeyondKeyError, Scope, unwatched, within
from dperm.storage import source_code

# An event of Python's audit, with the name of a module
LOOKUP = "dperm.lookup"
SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/usr", "/lib", "/run", "/bin")
# files and modules of jobs that run
_NOTED: list[tuple[set[str], set[str]]] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if not _NOTED or (event not in ("open", LOOKUP)) or unwatched.is_on:
        return
    opened, looked_up = _NOTED[-1]
    if event == LOOKUP:
        looked_up.add(arguments[0])
        return
    path, _, flags = arguments
    is_read = not (
        isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
    )
    if is_read and isinstance(path, str | os.PathLike):
        opened.add(os.fspath(path))


sys.addaudithook(_note)


@contextmanager
def kept(
    scope: Scope,
    by_digest: Sequence[Path],
    entry_points: Callable[[], Iterable[str]],
    rows: Path | None = None,
) -> Iterator[None]:
    """Refuse what the key of a job does not hold, at the end of the job.

    ``by_digest`` are files, and folders of files, that keys hold by their digests.
    ``entry_points`` returns those of the code in the job's key. ``rows`` is the folder
    of all rows of the paper, of which a product says what it shows.

    Raises BeyondKeyError, which names the job and what it has read.
    """
    _NOTED.append((set(), set()))
    try:
        with within(scope):
            yield
    finally:
        opened, looked_up = _NOTED.pop()
    paths = [
        path
        for path in map(_source, opened)
        if _is_watched(path, by_digest, scope)
    ]
    for path in sorted(paths):
        if rows is not None and path.is_relative_to(rows.resolve()):
            raise BeyondKeyError(
                f"{scope.job}: its code reads {path}, which is of no run, sweep or "
                "timing that it names: add problems, sweeps or timed beside function"
            )
    if paths or looked_up:
        _compare(scope.job, paths, looked_up, [*entry_points()])


def _compare(
    job: str, paths: Iterable[Path], modules: set[str], entry_points: list[str]
) -> None:
    reached = source_code.reached(*entry_points)
    names = {entry_point.partition(":")[0] for entry_point in reached}
    for module in sorted(modules - names):
        raise BeyondKeyError(
            f"{job}: its code looks up {module}, which its key does not hold: write "
            "its name in a setting of the job or in its function"
        )
    sources = {source_code.source(name) for name in names}
    known_files = sources | {
        path.resolve() for path in source_code.files(*entry_points)
    }
    for path in sorted({*paths} - known_files):
        raise BeyondKeyError(
            f"{job}: its code opens {path}, which its key does not hold: write the "
            "path, from the folder of the module that opens it, as a text in it"
        )


def _source(path: str) -> Path:
    """A file that was opened; of compiled code, its source."""
    opened = Path(path)
    if opened.suffix == ".pyc" and opened.parent.name == "__pycache__":
        opened = opened.parents[1] / f"{opened.name.partition('.')[0]}.py"
    return opened.resolve()


def _is_watched(path: Path, by_digest: Sequence[Path], scope: Scope) -> bool:
    """Whether the key must hold a file."""
    code = {".py", ".pyc", ".so"}
    if not path.is_file() or "__pycache__" in path.parts:
        return False
    if any(component.startswith(".") for component in path.parts[1:]):
        return False
    for folder in conf_dirs():  # of an installed package, below it
        if path.is_relative_to(folder) and path.suffix != ".py":
            return not (
                path.suffix == ".csv"
                and scope.holds(f"paper.published.{NAMES}")
            )
    if source_code.PACKAGE in path.parents:
        return path.suffix not in code
    libraries = (*SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix)
    if any(path.is_relative_to(folder) for folder in libraries):
        return False
    if any(path.is_relative_to(folder.resolve()) for folder in by_digest):
        return False
    conf = own_conf()
    near = [Path.cwd()]
    if conf:
        near.append(conf.parent)
    is_near = any(path.is_relative_to(folder) for folder in near)
    return is_near or not path.is_relative_to(tempfile.gettempdir())
