"""``dperm results``: packs the rows of a full run into an archive and unpacks them.

The archive holds the Parquet files and ledgers that figures, tables and claims are made
of. It also holds the prepared arrays and the optima of the machine that solved, so that
a machine whose last bits differ draws the same. ``RESULTS.json`` has the digest and the
size of every file, and the digests of the code and configuration behind every stage. A
digest proves no origin: ``--key`` signs the archive, or checks its signature.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from dperm.core.experiment import files as store
from dperm.core.experiment.locate import ConfigError, available
from dperm.pipeline import seals
from dperm.pipeline.completion import ArchiveError, require_of_now
from dperm.pipeline.graph import UNPACKED, Graph, load_graph, tidy
from dperm.store.folders import write_archive

HEAD, SIGNATURE = "RESULTS.json", "RESULTS.sig"
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError),
    *(AttributeError, KeyError, TypeError, ValueError),
)
MOST_HEAD = 4 << 20  # bytes of the head
MOST = 2.0  # GiB of an archive's files, unless --limit allows more
PLACES = ("output.", "data.")  # overrides that an archive may not contain
PLACED = {"output.results": "results", "output.figures": "figures", "data.dir": "data"}
SHARE = 0.01  # default share of the lanes to run again


# --- pack -----------------------------------------------------------------------------


def pack(
    papers: list[str],
    overrides: list[str],
    path: Path,
    key: Path | None = None,
    share: float = 0.0,
    seed: int | None = None,
) -> str:
    """Pack the results of papers that were run to their end; return a summary.

    Parameters
    ----------
    papers : list of str
        Papers to pack. An empty list packs all papers, with the audits that the report
        shows. Audits are packed unchecked, as no record names the code that made them.
    overrides : list of str
        Overrides of the configuration with which they were run.
    path : Path
        Path of the archive.
    key : Path, optional
        A private Ed25519 key in PEM that signs the archive.
    share, seed
        Share of the lanes to run again first, and seed of the choice, as in
        ``dperm verify``.

    Raises
    ------
    ArchiveError
        If a file is missing, or was made by other code or configuration.
    NotVerifiedError
        If ``dperm verify`` refuses the results.
    """
    _require_no_places(overrides)
    graph = load_graph(papers or available("paper"), overrides)
    rows = [file for paper in graph.papers for file in graph.rows(paper)]
    names = graph.ancestors(rows if papers else [*rows, *graph.audits()])
    for name in names:
        if not Path(name).is_file():
            raise ArchiveError(f"{name} is not there: run `dperm all` first")
    for paper in graph.papers:
        require_of_now(graph, paper)
    verified(graph.papers, overrides, share, seed)
    records = [
        name
        for name, needed in _records(graph).items()
        if needed or Path(name).is_file()
    ]
    names = sorted({*names, *_companions(names), *records})
    head = {
        "papers": graph.papers,
        "overrides": overrides,
        "commit": store.commit(),
        "versions": _versions(graph, Path()),
        "stages": stages(graph),
        "files": {name: _described(Path(name)) for name in names},
    }
    text = json.dumps(head, indent=1, sort_keys=True) + "\n"
    heads = {HEAD: text} | ({SIGNATURE: _signed(text, key)} if key else {})
    with store.whole(path) as beside:
        write_archive(beside, heads, {name: Path(name) for name in names})
    return f"{path}: {len(names)} files of {', '.join(graph.papers)}"


def verified(
    papers: list[str], overrides: list[str], share: float, seed: int | None
) -> None:
    """Refuse results that ``dperm verify`` refuses; do not judge claims again."""
    from dperm.pipeline import verify  # slow: imports all solvers

    verify.verify_all(papers, overrides, share, seed, judged=False)


def _require_no_places(overrides: list[str]) -> None:
    for text in overrides:
        if text.lstrip("+~").startswith(PLACES):
            raise ArchiveError(
                f"{text}: an archive has its files below results and data: leave it out"
            )


def _described(path: Path) -> dict[str, Any]:
    return {"sha256": store.file_digest(path), "size": path.stat().st_size}


def _versions(graph: Graph, top: Path) -> str:
    """Versions of the libraries that papers were run with, by their manifests."""
    folder = top / graph.below("results")
    known = (store.known_json(folder / p / "manifest.json") for p in graph.papers)
    found = dict.fromkeys(str(one["versions"]) for one in known if one)
    return "; ".join(found)


def _companions(names: Iterable[str]) -> Iterator[str]:
    """Files that go with others, unread by jobs: ledgers, arrays, Markdown tables."""
    for name in names:
        path = Path(name)
        if path.parts[0] == "data" and path.parts[1] != "fetched":
            yield from map(str, path.parent.glob("[!.]*.npy"))
        elif path.name == "tune.parquet" and path.with_name("ledger.json").is_file():
            yield str(path.with_name("ledger.json"))
        elif path.suffix == ".csv":
            yield from map(str, path.parent.glob(f"{path.stem}.*"))


def _records(graph: Graph) -> dict[str, bool]:
    """Records of runs and seals, and whether an archive must have them."""
    folders = [f"{graph.below('results')}{paper}/" for paper in graph.papers]
    names = ("manifest.json", "record.json")
    needed = [f"{folder}{name}" for folder in folders for name in names]
    further = [f"{folder}{seals.FILE}" for folder in ("data/", *folders)]
    return dict.fromkeys(needed, True) | dict.fromkeys(further, False)


def stages(graph: Graph) -> dict[str, str]:
    """Digests of the code and configuration behind the files of an archive."""
    data = ("prepare/", "optimum/", "audit/")
    digests = {k: made for k, made in graph.digests.items() if k.startswith(data)}
    for paper in graph.papers:
        digests |= graph.row_digests(paper)
    return digests


# --- unpack ---------------------------------------------------------------------------


def unpack(
    path: Path,
    replace: bool = False,
    key: Path | None = None,
    most: float = MOST,
    share: float = 0.0,
    seed: int | None = None,
) -> str:
    """Put the files of an archive where the pipeline looks for them; return a summary.

    All files are checked before the first is moved, and all get the same time stamp.

    Parameters
    ----------
    path : Path
        Path of the archive.
    replace : bool
        Whether to replace existing files that differ.
    key : Path, optional
        A public Ed25519 key in PEM, whose owner must have signed the archive.
    most : float
        Largest size of its files in GiB.
    share, seed
        Share of the lanes to run again first, and seed of the choice, as in
        ``dperm verify``.

    Raises
    ------
    ArchiveError
        If the archive is damaged, not signed by that key, or of other code or
        configuration; or, unless ``replace``, if it would replace other files.
    NotVerifiedError
        If ``dperm verify`` refuses its results.
    """
    with _opened(path, key, most) as (archive, head):
        graph = _require_same_code(path, head)
        _require_wanted(path, head, graph)
        if not replace:
            _require_no_others(path, head["files"])
        work = Path(f".{store.NODE}.{os.getpid()}{UNPACKED}")
        try:
            for name, known in head["files"].items():
                _take(archive, name, known, work)
            _require_consistent(head, graph, work)
            inside = [f"{option}={work / top}" for option, top in PLACED.items()]
            verified(head["papers"], [*head["overrides"], *inside], share, seed)
            _move(work, head["files"])
        finally:
            shutil.rmtree(work, ignore_errors=True)
    said = f"{path}: {len(head['files'])} files of {', '.join(head['papers'])}"
    if head["versions"] != store.versions():
        said += f", solved with {head['versions']}, where {store.versions()} is"
    if key is None:
        said += ", of unknown origin (no --key)"
    return f"{said}; `dperm all` draws and judges them, and solves nothing"


@contextmanager
def _opened(
    path: Path, key: Path | None, most: float
) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """Open an archive and check its head; any fault is an error of one line."""
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read(_small(archive, HEAD))
            head = json.loads(text)
            _require_head(head)
            names = [HEAD, *([SIGNATURE] if SIGNATURE in archive.namelist() else [])]
            if sorted(archive.namelist()) != sorted([*names, *head["files"]]):
                raise ValueError("it does not hold what it says")
            if any(one.flag_bits & 1 for one in archive.infolist()):
                raise ValueError("it is encrypted")
            sizes = {one.filename: one.file_size for one in archive.infolist()}
            for name, known in head["files"].items():
                if sizes[name] != known["size"]:
                    raise ValueError(f"{name} has another size than it says")
            total = sum(sizes.values()) / 2**30
            if total > most:
                raise ArchiveError(
                    f"{path} holds {total:.1f} GiB, more than {most:g}: "
                    f"--limit {total:.0f} allows it"
                )
            if key is not None:
                _require_signed(archive, text, key)
            yield archive, head
    except ConfigError:
        raise
    except BROKEN as error:
        said = " ".join(str(error).split())
        raise ArchiveError(
            f"{path} is no archive of results, or damaged ({said}): get it again"
        ) from error


def _small(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    info = archive.getinfo(name)
    if info.file_size > MOST_HEAD:
        raise ValueError(f"{name} has {info.file_size} bytes, more than {MOST_HEAD}")
    return info


def _require_head(head: Any) -> None:
    """Refuse a head that does not have the form that ``pack`` writes."""
    texts = {"commit": str, "versions": str, "papers": list, "overrides": list}
    kinds = texts | {"stages": dict, "files": dict}
    for name, kind in kinds.items():
        if not isinstance(head, dict) or not isinstance(head.get(name), kind):
            raise ValueError(f"{name} of its head: expected {kind.__name__}")
    words = [*head["papers"], *head["overrides"], *head["stages"].values()]
    if not head["papers"] or not all(isinstance(word, str) for word in words):
        raise ValueError("its head names no papers, or something that is no text")
    _require_no_places(head["overrides"])
    for name, known in head["files"].items():
        good = isinstance(known, dict) and {*known} == {"sha256", "size"}
        if not good or not isinstance(known["size"], int) or known["size"] < 0:
            raise ValueError(f"{name}: expected a digest and a size")


def _require_same_code(path: Path, head: dict[str, Any]) -> Graph:
    theirs = head["stages"]
    graph = load_graph(head["papers"], head["overrides"])
    ours = stages(graph)
    every = {*ours, *theirs}
    other = sorted(key for key in every if ours.get(key) != theirs.get(key))
    if other:
        raise ArchiveError(
            f"{path} is of other code or configuration (commit {head['commit']}, "
            f"{head['versions']}): {len(other)} of {len(every)} stages differ, "
            f"first {other[0]}"
        )
    return graph


def _require_wanted(path: Path, head: dict[str, Any], graph: Graph) -> None:
    """Refuse an archive that lacks a file of its papers, or holds another file."""
    audits = [name for name in graph.audits() if name in head["files"]]
    rows = [file for paper in graph.papers for file in graph.rows(paper)]
    wanted = {*graph.ancestors([*rows, *audits])}
    records = _records(graph)
    needed = {name for name in records if records[name]}
    lost = sorted((wanted | needed) - {*head["files"]})
    more = sorted({*head["files"]} - wanted - {*records})
    more = [name for name in more if not _is_companion(name, wanted)]
    if lost or more:
        what = (
            f"lacks {lost[0]}" if lost else f"holds {more[0]!r}, which no paper needs"
        )
        raise ArchiveError(f"{path} {what}: get it again")


def _is_companion(name: str, wanted: set[str]) -> bool:
    """Whether a file may belong to a wanted one, as in ``_companions``."""
    found = re.fullmatch(r"(.*/)([A-Za-z0-9_-]+)\.(\w+)", name)
    top, stem, ending = found.groups() if found else ("", "", "")
    if ending == "npy":
        beside = {f"{top}meta.json", f"{top}optimum.json"} & wanted
        return bool(beside) and top.startswith("data/")
    if name == f"{top}ledger.json":
        return f"{top}tune.parquet" in wanted
    return ending == "md" and f"{top}{stem}.csv" in wanted


def _require_consistent(head: dict[str, Any], graph: Graph, work: Path) -> None:
    """Refuse rows that the archive's own records and seals contradict."""
    for paper in graph.papers:
        require_of_now(graph, paper, work)
        folder = work / f"{graph.below('results')}{paper}"
        record = store.read_json(folder / "record.json")
        given = record["configuration"]["overrides"]
        given = [text for text in given if not text.startswith(("paper=", "made="))]
        if given != head["overrides"]:
            raise ArchiveError(
                f"the record of {paper} was run with {' '.join(given)}, its archive "
                f"says {' '.join(head['overrides'])}"
            )
    if _versions(graph, work) != head["versions"]:
        raise ValueError("its manifests are of other versions than it says")


def _require_no_others(path: Path, files: dict[str, dict[str, Any]]) -> None:
    """Refuse to replace files with other content, or files that a seal here names."""
    for name, known in files.items():
        here = Path(name)
        if here.name == seals.FILE:
            continue
        digest = store.file_digest(here) if here.is_file() else _sealed_digest(here)
        if digest not in ("", known["sha256"]):
            there = "is there" if here.is_file() else "is sealed here"
            raise ArchiveError(
                f"{name} {there}, and not that of {path}: unpack in another folder, "
                "or with --replace"
            )


def _sealed_digest(path: Path) -> str:
    """Digest of a missing file by the seal of its folder; empty if not sealed."""
    for folder in path.parents:
        if (folder / seals.FILE).is_file():
            name = path.relative_to(folder).as_posix()
            job = seals.by_file(folder).get(name, {"wrote": {}})
            return job["wrote"].get(name, "")
    return ""


def _take(
    archive: zipfile.ZipFile, name: str, known: dict[str, Any], work: Path
) -> None:
    target = work / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(name) as source, open(target, "wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)  # at most the declared size
    if _described(target) != known:
        raise ValueError(f"{name} has another digest")


def _move(work: Path, names: Iterable[str]) -> None:
    """Move files into place with one time stamp: no input is newer than its output.

    Seals are moved first. If the process is killed, files not yet moved contradict
    them, and unpacking the same archive again completes the move.
    """
    now, names = time.time(), [*names]
    for name in names:
        if PurePosixPath(name).name == seals.FILE:
            folder = PurePosixPath(name).parent
            own = {PurePosixPath(each) for each in names}
            seals.add(
                Path(folder),
                {
                    key: job
                    for key, job in seals.jobs_of(work / folder).items()
                    if all(folder / each in own for each in job["wrote"])
                },
            )
    for name in names:
        if PurePosixPath(name).name != seals.FILE:
            os.utime(work / name, (now, now))
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).replace(name)


# --- signatures -----------------------------------------------------------------------


def _signed(text: str, key: Path) -> str:
    """Sign a head with a private Ed25519 key in PEM; refuse other keys."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private: Any = _key(key, "private", Ed25519PrivateKey, password=None)
    return private.sign(text.encode()).hex() + "\n"


def _require_signed(archive: zipfile.ZipFile, text: bytes, key: Path) -> None:
    """Refuse an archive that the owner of a key did not sign."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    public: Any = _key(key, "public", Ed25519PublicKey)
    if SIGNATURE not in archive.namelist():
        raise ArchiveError(f"{archive.filename} is not signed, by {key} or another")
    signature = archive.read(_small(archive, SIGNATURE)).decode().strip()
    try:
        public.verify(bytes.fromhex(signature), text)
    except InvalidSignature as error:
        raise ArchiveError(f"{archive.filename} was not signed by {key}") from error


def _key(path: Path, kind: str, form: type, **options: Any) -> Any:
    from cryptography.hazmat.primitives import serialization

    try:
        load = getattr(serialization, f"load_pem_{kind}_key")
        key = load(path.read_bytes(), **options)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, form):
        raise ArchiveError(f"{path}: expected a {kind} Ed25519 key in PEM")
    return key


# --- the command ----------------------------------------------------------------------


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``dperm results``."""
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("pack", help="pack the rows behind figures and claims")
    one.add_argument("what", nargs="*", help="papers (default all), and key=value")
    one.add_argument("-o", "--output", type=Path, default=Path("results.zip"))
    one.add_argument("--key", type=Path, help="private Ed25519 key, PEM, that signs")
    other = actions.add_parser("unpack", help="unpack it in a checkout of its commit")
    other.add_argument("archive", type=Path)
    other.add_argument(
        "--replace", action="store_true", help="other files that are there"
    )
    other.add_argument("--key", type=Path, help="public key that must have signed it")
    other.add_argument("--limit", type=float, default=MOST, help="GiB of its files")
    for each in (one, other):
        replaying(each)


def replaying(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``dperm verify`` on the lanes to run again."""
    text = f"share of the lanes that is run again ({SHARE}; 0: none)"
    parser.add_argument("--replay", type=float, default=SHARE, help=text)
    parser.add_argument("--seed", type=int, help="that chooses them (default: fresh)")


def main(options: argparse.Namespace) -> None:
    """Run ``dperm results pack`` or ``dperm results unpack``."""
    tidy()
    again = (options.replay, options.seed)
    if options.action == "pack":
        what = _papers_and_overrides(options.what)
        print(pack(*what, options.output, options.key, *again))
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that finally runs
        given = (options.replace, options.key, options.limit)
        print(unpack(options.archive, *given, *again))


def _papers_and_overrides(words: list[str]) -> tuple[list[str], list[str]]:
    """Papers, and the overrides in the order of the Snakefile: the scale first."""
    papers = [word for word in words if "=" not in word]
    scales = [word for word in words if word.startswith("scale=")] or ["scale=full"]
    rest = [word for word in words if "=" in word and not word.startswith("scale=")]
    return papers, [scales[-1], *rest]
