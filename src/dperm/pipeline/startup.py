"""What a start of Snakemake needs before any job: papers, overrides, the kept graph.

The build graph is kept for as long as nothing it is made of has changed, in
``.snakemake/dperm`` of the folder that is worked in, beside what Snakemake remembers of
the same runs, and goes with it. Its name is a digest of the papers and overrides, of
every file of the configuration, of the package's whole source and of the libraries'
versions. Source that lies elsewhere, such as a solver of the reader's own with what it
imports, is known only when the graph is composed, and so are data of the reader's own:
the digests of these files lie in the graph's file and are compared when it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import dperm
from dperm.core.experiment import files as store
from dperm.core.experiment.locate import ConfigError, conf_dirs
from dperm.core.experiment.validation import one_of
from dperm.pipeline.graph import Graph
from dperm.store import closure

FOLDER = Path(".snakemake/dperm")
KEPT = 20  # graphs of other targets and overrides; the oldest go
TOPS = ("figures", "results")
UNPACKED = ".unpacked"  # ends the name of a folder whose files were not checked yet
OVERRIDES = {  # by the wildcards of a job
    **{name: name for name in ("paper", "problem", "solver")},
    "name": "product",
}


# --- the command line -----------------------------------------------------------------


def papers_of(command: Sequence[str], papers: Sequence[str]) -> list[str]:
    """The papers that the targets of a command line need; all where that is unclear.

    Snakemake tells a Snakefile of its targets only after it was read, so that they are
    taken from the command line by Snakemake's own parser.

    Parameters
    ----------
    command : sequence of str
        ``sys.argv``.
    papers : sequence of str
        All there are.

    Returns
    -------
    list of str
        In the order of ``papers``.
    """
    if "snakemake" not in (PurePath(part).stem for part in PurePath(command[0]).parts):
        return list(papers)
    # Imported by then, and by nobody else: Snakemake is what runs the Snakefile.
    from snakemake.cli import get_argument_parser

    options, _ = get_argument_parser().parse_known_args(list(command[1:]))
    found = [_of_target(target, papers) for target in options.targets]
    found += [job.wildcards_dict.get("paper") for job in options.target_jobs]
    if not found or not set(found) <= set(papers):
        return list(papers)
    return [paper for paper in papers if paper in found]


def _of_target(target: str, papers: Sequence[str]) -> str | None:
    """The paper a target is, or is a file of; None where another may be needed."""
    if target in papers:
        return target
    top, *below = PurePath(re.sub(r"^\./", "", target)).parts
    named = [part for part in below[:2] if part in papers]
    return named[0] if top in TOPS and len(named) == 1 else None


def answers(command: Sequence[str], results: str, papers: Sequence[str]) -> str:
    """What a run ends with: of each paper its ``complete.txt``, of a file its path."""
    texts = [
        Path(results, paper, "complete.txt") for paper in papers_of(command, papers)
    ]
    files = [word for word in command if word.startswith(TOPS) and Path(word).is_file()]
    found = [path.read_text(encoding="utf-8") for path in texts if path.is_file()]
    return "\n".join(files or ["".join(found).rstrip()])


def overrides(settings: dict[str, Any], command: Sequence[str] = ()) -> list[str]:
    """Hydra overrides that Snakemake's ``--config`` asks for.

    Parameters
    ----------
    settings : dict
        ``scale``, and ``set``: several, with blanks between them, quoted as in a shell.
    command : sequence of str
        ``sys.argv``, from which ``set`` is taken as it was given: Snakemake cuts quotes
        off its ends and reads the rest as YAML, to which `` #`` begins a comment.

    Raises
    ------
    ConfigError
        For a key that is neither ``scale`` nor ``set``, or a quote that is not closed.
    """
    for key in settings:
        one_of("--config", key, ("scale", "set"))
    text = settings.get("set", "")
    given = [word[4:] for word in command if word.startswith("set=") and text != ""]
    try:
        words = shlex.split(given[-1] if given else str(text or ""))
    except ValueError as error:
        raise ConfigError(
            f"--config: set: {text}: expected quotes as in a shell: {error}"
        ) from error
    return [f"scale={settings.get('scale', 'full')}", *words]


# --- the Snakefile's functions -------------------------------------------------------


def prefix(folder: str) -> str:
    """What every job's shell does first: it finds the package beside the Snakefile.

    An environment needs no dperm in it then. Snakemake takes ``PYTHONPATH`` from those
    that it makes itself, so that it is set inside; and its own prefix is this instead.
    """
    path = shlex.quote(str(Path(folder, "src"))).replace("{", "{{").replace("}", "}}")
    own = "${{PYTHONPATH:+:$PYTHONPATH}}"
    return f"set -euo pipefail; export PYTHONPATH={path}{own}; "


def keys(names: Any) -> str:
    """Wildcards of a job as overrides of its stage."""
    return " ".join(
        f"{key}={getattr(names, name)}"
        for name, key in OVERRIDES.items()
        if hasattr(names, name)
    )


def begin(workflow: Any) -> None:
    """Note when a workflow began, for its manifest, and have it look when a job ends.

    With a limit on jobs in a timespan, which it has by itself, Snakemake leaves a timer
    for each job that ended, and each fires every second until the end.
    """
    tidy()
    os.environ["DPERM_STARTED"] = str(time.monotonic())
    workflow.scheduler.job_rate_limiter = None


def tidy() -> None:
    """Remove the folder of an unpacking that was killed, from where we are."""
    for folder in Path().glob(f".{store.NODE}.*{UNPACKED}"):
        process = folder.name.removesuffix(UNPACKED).rpartition(".")[2]
        if process.isdigit() and not store.alive(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def audit_key(part: str) -> str:
    """The key of the command that makes ``solvers/<name>`` or a table of the audit."""
    folder, _, name = part.rpartition("/")
    return f"solver={name}" if folder else f"product={name}"


def attempt(dataset: str, folder: str = "data") -> float:
    """Another number each time if no source had it: then it is asked for again."""
    path = Path(folder, "fetched", dataset, "fetch.json")
    try:
        status = json.loads(path.read_text(encoding="utf-8"))["status"]
    except (OSError, ValueError, TypeError, KeyError):  # fetch says what is wrong
        return 0.0
    return time.time() if status != "ok" else 0.0


# --- the kept graph -------------------------------------------------------------------


def load_graph(papers: list[str], overrides: list[str]) -> Graph:
    """The graph that ``dperm.pipeline.runtable`` composes, anew only where it must be.

    A line on stderr says that it is. A graph that cannot be written is not kept.

    Raises
    ------
    ConfigError
        For anything wrong anywhere, before a single job runs.
    """
    path = FOLDER / f"{_key(papers, overrides)}.json"
    graph = _read(path)
    if graph is None:
        # Solvers come with it, and all that they compute with.
        from dperm.pipeline import runtable

        what = "1 paper" if len(papers) == 1 else f"{len(papers)} papers"
        print(f"dperm: composing {what}: {', '.join(papers)}", file=sys.stderr)
        began = time.time()
        graph = runtable.run_table(papers, overrides)
        if path.stem == _key(papers, overrides):  # nothing was edited meanwhile
            _keep(path, graph, began)
    return graph


def _key(papers: list[str], overrides: list[str]) -> str:
    """Digest of everything known beforehand that the graph is made of."""
    return _digest(
        [
            *(papers, overrides, dperm.source_digest(), store.versions()),
            [str(folder) for folder in conf_dirs()],
            *(list(_configuration()), list(_modules())),
        ]
    )


def _configuration() -> Iterator[tuple[str, str]]:
    """Every file below the folders of configuration, with its digest."""
    for folder in conf_dirs():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(folder)), store.file_digest(path)


def _modules() -> Iterator[tuple[str, list[str]]]:
    """Modules of the reader's own that Python would find: one more may hide another."""
    libraries = Path(os.__file__).parent
    for folder in map(Path, sys.path):
        apart = libraries in (folder, *folder.parents) or folder.stem == "site-packages"
        if folder.is_dir() and not apart:
            packages = (path.parent.name for path in folder.glob("*/__init__.py"))
            names = [*packages, *(path.name for path in folder.glob("*.py"))]
            yield str(folder), sorted(names)


def _read(path: Path) -> Graph | None:
    """A kept graph; None if there is none, it is damaged, or other source is read."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        graph, sources = kept["graph"], kept["sources"]
        if kept["digest"] != _digest([graph, sources]):
            return None
        for name, digest in sources.items():
            if store.file_digest(Path(name)) != digest:
                return None
        for name, digest in graph["files"].items():  # empty where there is none
            data = Path(name.removeprefix("file "))
            if digest != (store.file_digest(data) if data.is_file() else ""):
                return None
        os.utime(path)  # the latest used stay
        return Graph.from_json(graph)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _keep(path: Path, graph: Graph, began: float) -> None:
    """Write a graph whole or not at all, and remove the oldest."""
    package = Path(dperm.__file__).parent  # is in the name
    others = [file for file in closure.files() if package not in file.parents]
    try:
        if any(file.stat().st_mtime >= began for file in others):
            return  # edited meanwhile
        sources = {str(file): store.file_digest(file) for file in others}
        content = {"graph": graph.to_json(), "sources": sources}
        kept = {**content, "digest": _digest([*content.values()])}
        store.write_text(path, json.dumps(kept))
        graphs = path.parent.glob("[!.]*.json")
        for old in sorted(graphs, key=lambda file: file.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    except OSError:  # a folder that may only be read, a full disk: it is made each time
        return


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
