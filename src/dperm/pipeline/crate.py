"""``dperm crate``: runs as a Workflow Run RO-Crate, for archives that read such.

Made of the records that runs leave, and of nothing else: ``manifest.json`` (when, by
what commit, how long) and ``record.json`` (platform, configuration, digests of data and
rows). Profile: https://w3id.org/ro/wfrun/workflow/0.5. Needs ``dperm[crate]``.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dperm import __version__
from dperm.core.experiment import files as store
from dperm.core.experiment import locate
from dperm.core.experiment.locate import ConfigError, available
from dperm.pipeline import startup
from dperm.pipeline.packed import ArchiveError, require_of_now

LICENCE = "https://spdx.org/licenses/BSD-3-Clause"
PROFILES = {
    "Process Run Crate": "https://w3id.org/ro/wfrun/process/0.5",
    "Workflow Run Crate": "https://w3id.org/ro/wfrun/workflow/0.5",
    "Workflow RO-Crate": "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
}
ENVIRONMENT = ("environment.yml", "requirements.lock")
TYPES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".lock": "text/plain",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".yml": "application/yaml",
}


def crate(papers: list[str], path: Path) -> Path:
    """Write the crate of papers' runs at full scale, a ZIP archive.

    Raises
    ------
    ConfigError
        If a paper was not run, or by other code, or the library is not there.
    """
    try:
        from rocrate.rocrate import ROCrate
    except ImportError as error:
        raise ConfigError("dperm crate needs `pip install 'dperm[crate]'`") from error
    runs = {name: _records(name) for name in papers}
    _require_of_now(papers)
    archive = ROCrate(version="1.1")
    archive.name = f"dperm: runs of {', '.join(papers)}"
    archive.description = (
        "Papers on differentially private convex optimisation, run again: figures and "
        "tables, and the record of the runs that made them"
    )
    archive.license = LICENCE
    archive.root_dataset["conformsTo"] = [
        _named(
            archive, PROFILES[name], "CreativeWork", name, version=PROFILES[name][-3:]
        )
        for name in PROFILES
    ]
    workflow = _workflow(archive)
    actions = [
        _action(archive, workflow, name, *records) for name, records in runs.items()
    ]
    archive.root_dataset["mentions"] = actions
    with store.whole(path) as beside:
        archive.write_zip(beside)
    return path


def _require_of_now(papers: list[str]) -> None:
    """Refuse runs that the present code and configuration did not make."""
    graph = startup.load_graph(papers, [])
    for paper in papers:
        try:
            require_of_now(graph, paper)
        except ArchiveError as error:
            raise ConfigError(str(error)) from error


def _records(paper: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and record of a paper's run."""
    records = []
    for name in ("manifest.json", "record.json"):
        path = Path("results", paper, name)
        if not path.is_file():
            raise ConfigError(f"{path} is not there: run `dperm {paper}` first")
        records.append(store.read_json(path))
    return records[0], records[1]


def _workflow(archive: Any) -> Any:
    """The Snakefile, and the environment it runs in."""
    root = locate.home()
    properties = {"name": "dperm", "version": __version__, "license": LICENCE}
    workflow = archive.add_workflow(
        root / "Snakefile",
        "Snakefile",
        main=True,
        lang="snakemake",
        properties=properties,
    )
    archive.root_dataset["conformsTo"] = [archive.get(one) for one in PROFILES.values()]
    workflow["softwareRequirements"] = [
        _file(archive, root / name, name) for name in ENVIRONMENT
    ]
    return workflow


def _action(
    archive: Any,
    workflow: Any,
    paper: str,
    manifest: dict[str, Any],
    record: dict[str, Any],
) -> Any:
    """The run of a paper: what it read, what it left."""
    commits = ", ".join(manifest["commit"])
    properties = {
        "name": f"dperm {paper}",
        "description": f"{manifest['runs']} runs on {manifest['machine']}, by commit "
        f"{commits}, {manifest['solver_seconds']:g} seconds of solvers",
        "endTime": manifest["date"],
    }
    read = [
        _named(
            archive,
            f"#{paper}-{kind}-{name}",
            "PropertyValue",
            f"{kind} {name}",
            value=value,
        )
        for kind, name, value in _inputs(manifest, record)
    ]
    left = [_file(archive, path, str(path)) for path in _outputs(paper)]
    return archive.add_action(workflow, f"#run-{paper}", read, left, properties)


def _inputs(
    manifest: dict[str, Any], record: dict[str, Any]
) -> Iterator[tuple[str, str, Any]]:
    """Kind, name and value of all that determined the rows."""
    yield "seed", "master", manifest["master_seed"]
    digests = record["digests"]
    for name, known in digests["data"].items():
        yield "data", name, known["dataset_digest"]
    for name, known in digests["optima"].items():
        yield "optimum", name, known["digest"]
    for kind, values in (
        ("solver", digests["solvers"]),
        ("platform", record["platform"]),
        ("package", record["packages"]),
    ):
        for name, value in values.items():
            yield kind, name, value


def _outputs(paper: str) -> list[Path]:
    """Figures, tables and records; rows are in the archive of ``dperm results``."""
    folders = (Path("results", paper), Path("figures", paper))
    every = (path for folder in folders for path in sorted(folder.glob("[!.]*")))
    return [path for path in every if path.is_file() and path.suffix in TYPES]


def _file(archive: Any, path: Path, name: str) -> Any:
    content = path.read_bytes()
    properties = {
        "name": name,
        "contentSize": str(len(content)),
        "encodingFormat": TYPES[path.suffix],
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    return archive.add_file(path, name, properties=properties)


def _named(
    archive: Any, identifier: str, kind: str, name: str, **properties: Any
) -> Any:
    from rocrate.model.contextentity import ContextEntity

    properties = {"@type": kind, "name": name, **properties}
    return archive.add(ContextEntity(archive, identifier, properties=properties))


def arguments(parser: argparse.ArgumentParser) -> None:
    """What follows ``dperm crate``."""
    parser.add_argument("papers", nargs="*", help="papers that were run (default all)")
    parser.add_argument("-o", "--output", type=Path, default=Path("results/crate.zip"))


def main(options: argparse.Namespace) -> None:
    """``dperm crate``: write ``results/crate.zip``."""
    papers = options.papers or available("paper")
    print(f"{crate(papers, options.output)}: the runs of {', '.join(papers)}")
