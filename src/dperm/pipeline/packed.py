"""``dperm results``: the rows of a full run in one archive, and back from it.

The archive holds what figures, tables and claims are made of, Parquet files and
ledgers, and what those depend on: the prepared arrays and the optima of the machine
that solved, so that one whose last bits differ draws the same. ``RESULTS.json`` has
the digest of every file, and of the code and configuration behind every stage.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from dperm.core.experiment import files as store
from dperm.core.experiment.locate import ConfigError, available
from dperm.pipeline import startup
from dperm.pipeline.graph import Graph
from dperm.store.folders import write_archive

HEAD = "RESULTS.json"
TOPS = ("data", "results")  # folders that an archive may write to
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, ValueError)


class ArchiveError(RuntimeError):
    """Results that are not packed or not unpacked; the text says why, in one line."""


# --- pack -----------------------------------------------------------------------------


def pack(papers: list[str], overrides: list[str], path: Path) -> str:
    """Pack the results of papers that were run to their end; what was packed.

    Without ``papers`` all of them are, with the audits that the report shows: as they
    lie there, since no record says which code made them.

    Raises
    ------
    ArchiveError
        If something is not there, or was made by other code or configuration.
    """
    graph = startup.load_graph(papers or available("paper"), overrides)
    rows = [file for paper in graph.papers for file in graph.rows(paper)]
    names = graph.ancestors(rows if papers else [*rows, *graph.audits()])
    for name in names:
        if not Path(name).is_file():
            raise ArchiveError(f"{name} is not there: run `dperm all` first")
    for paper in graph.papers:
        require_of_now(graph, paper)
    names = sorted({*names, *_companions(names), *_records(graph)})
    head = {
        "papers": graph.papers,
        "overrides": overrides,
        "commit": store.commit(),
        "versions": store.versions(),
        "stages": stages(graph),
        "files": {name: store.file_digest(Path(name)) for name in names},
    }
    with store.whole(path) as beside:
        write_archive(beside, (HEAD, head), {name: Path(name) for name in names})
    return f"{path}: {len(names)} files of {', '.join(graph.papers)}"


def _companions(names: Iterable[str]) -> Iterator[str]:
    """What belongs to files and no job reads: ledgers, arrays, a table's texts."""
    for name in names:
        path = Path(name)
        if path.parts[0] == "data" and path.parts[1] != "fetched":
            yield from map(str, path.parent.glob("[!.]*.npy"))
        elif path.name == "tune.parquet" and path.with_name("ledger.json").is_file():
            yield str(path.with_name("ledger.json"))
        elif path.suffix == ".csv":
            yield from map(str, path.parent.glob(f"{path.stem}.*"))


def _records(graph: Graph) -> Iterator[str]:
    for paper in graph.papers:
        for name in ("manifest.json", "record.json"):
            yield f"{graph.below('results')}{paper}/{name}"


def require_of_now(graph: Graph, paper: str) -> None:
    """Refuse rows that the present code and configuration did not make."""
    from dperm.pipeline.completion import digest_rows

    folder = Path(f"{graph.below('results')}{paper}")
    record = store.known_json(folder / "record.json") or {}
    again = f"run `dperm {paper}` first"
    if record.get("made") != graph.rows_digest(paper):
        raise ArchiveError(
            f"{folder / 'record.json'} is of no run, or of one of other code or "
            f"configuration: {again}"
        )
    for name in graph.rows(paper):
        rows = digest_rows(store.read_table(Path(name)))
        if record["digests"]["rows"].get(str(Path(name).relative_to(folder))) != rows:
            raise ArchiveError(f"{name} has other rows than its record says: {again}")


def stages(graph: Graph) -> dict[str, str]:
    """Digests of code and configuration behind all that an archive holds."""
    data = ("prepare/", "optimum/", "audit/")
    digests = {k: made for k, made in graph.digests.items() if k.startswith(data)}
    for paper in graph.papers:
        digests |= graph.row_digests(paper)
    return digests


# --- unpack ---------------------------------------------------------------------------


def unpack(path: Path, replace: bool = False) -> str:
    """Put the files of an archive where the pipeline looks for them; what was unpacked.

    All are checked before the first is moved, and are of one time.

    Raises
    ------
    ArchiveError
        If the archive is damaged or of other code or configuration, or, unless
        ``replace``, if other data or rows lie where its own would go.
    """
    with _opened(path) as (archive, head):
        _require_same_code(path, head)
        if not replace:
            _require_no_others(path, head["files"])
        work = Path(f".{path.stem}.{os.getpid()}.unpacked")
        try:
            for name, digest in head["files"].items():
                _take(archive, name, digest, work)
            _move(work, head["files"])
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return (
        f"{path}: {len(head['files'])} files of {', '.join(head['papers'])}; "
        "`dperm all` draws and judges them, and solves nothing"
    )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """The archive and its head; whatever is wrong with either is one line."""
    try:
        with zipfile.ZipFile(path) as archive:
            head = json.loads(archive.read(HEAD))
            for name in head["files"]:
                where = PurePosixPath(name)
                if where.parts[0] not in TOPS or ".." in where.parts:
                    raise ValueError(f"{name} is not below {' or '.join(TOPS)}")
            if sorted(archive.namelist()) != sorted([HEAD, *head["files"]]):
                raise ValueError("it does not hold what it says")
            yield archive, head
    except ConfigError:
        raise
    except BROKEN as error:
        raise ArchiveError(
            f"{path} is no archive of results, or damaged ({error}): get it again"
        ) from error


def _require_same_code(path: Path, head: dict[str, Any]) -> None:
    theirs = head["stages"]
    ours = stages(startup.load_graph(head["papers"], head["overrides"]))
    every = {*ours, *theirs}
    other = sorted(key for key in every if ours.get(key) != theirs.get(key))
    if other:
        raise ArchiveError(
            f"{path} is of other code or configuration (commit {head['commit']}, "
            f"{head['versions']}): {len(other)} of {len(every)} stages differ, "
            f"first {other[0]}"
        )


def _require_no_others(path: Path, files: dict[str, str]) -> None:
    """Refuse to take the place of data and rows; the rest is in Git, or made again."""
    for name, digest in files.items():
        here = Path(name)
        counts = here.suffix == ".parquet" or here.parts[0] == "data"
        if counts and here.is_file() and store.file_digest(here) != digest:
            raise ArchiveError(
                f"{name} is there, and not that of {path}: unpack in another folder, "
                "or with --replace"
            )


def _take(archive: zipfile.ZipFile, name: str, digest: str, work: Path) -> None:
    target = work / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(name) as source, open(target, "wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
    if store.file_digest(target) != digest:
        raise ValueError(f"{name} has another digest")


def _move(work: Path, names: Iterable[str]) -> None:
    """Of one time all of them: none is newer than what it was made of."""
    now = time.time()
    for name in names:
        os.utime(work / name, (now, now))
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).replace(name)


# --- the command ----------------------------------------------------------------------


def arguments(parser: argparse.ArgumentParser) -> None:
    """What follows ``dperm results``."""
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("pack", help="pack what figures and claims are made of")
    one.add_argument("what", nargs="*", help="papers (default all), and key=value")
    one.add_argument("-o", "--output", type=Path, default=Path("results.zip"))
    other = actions.add_parser("unpack", help="unpack it in a checkout of its commit")
    other.add_argument("archive", type=Path)
    other.add_argument(
        "--replace", action="store_true", help="other data and rows that are there"
    )


def main(options: argparse.Namespace) -> None:
    """``dperm results pack`` and ``dperm results unpack``."""
    if options.action == "pack":
        print(pack(*_papers_and_overrides(options.what), options.output))
    else:
        print(unpack(options.archive, options.replace))


def _papers_and_overrides(words: list[str]) -> tuple[list[str], list[str]]:
    """Papers, and the overrides as the Snakefile has them, the scale first."""
    papers = [word for word in words if "=" not in word]
    scales = [word for word in words if word.startswith("scale=")] or ["scale=full"]
    rest = [word for word in words if "=" in word and not word.startswith("scale=")]
    return papers, [scales[-1], *rest]
