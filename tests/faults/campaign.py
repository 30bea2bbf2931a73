"""Faults by chance, counted by class: ``python -m faults.campaign --count 400``.

A seed chooses what is done. Each fault is tried in this process on a finished paper of
two runs and a sweep, and the answer is counted: seen (refused in at most three lines,
or read as before), long, silent, or a traceback. Kills are tried on a process of their
own, and completed afterwards. The table is ``results/faults.csv``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from data.conftest import Site
from dperm.config.config import compose
from dperm.config.locate import ConfigError
from dperm.config.schema import Data, Dataset, Reader, Source
from dperm.data import digest_arrays, fetch
from dperm.data.arrays import RefusedError
from dperm.data.readers import read_files
from dperm.storage import files as store
from dperm.workflow import manifest, verify, workflow
from dperm.workflow.jobs import Jobs
from faults import test_damaged as damaged
from faults import test_verify as tampered
from faults.tiny import Project, same_rows

LINES = 3  # most of an answer
TOPS = ("results", "figures", "data")
SEEN, ACCEPTED, SILENT, LONG, TRACEBACK = (
    "seen",
    "accepted",
    "silent",
    "long",
    "traceback",
)
OUTCOMES = (SEEN, ACCEPTED, SILENT, LONG, TRACEBACK)
EQUAL, OTHER = "bits equal", "other bits"


@dataclass
class Campaign:
    """A folder with a finished paper, the chance, and what was counted."""

    folder: Path
    chance: random.Random
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)

    def count(
        self, name: str, case: str, outcome: str, text: str = ""
    ) -> None:
        """Count the outcome of a case of a class."""
        self.counts[name, outcome] += 1
        if outcome in (SILENT, LONG, TRACEBACK, OTHER):
            self.unexpected.append(f"{name}: {case}: {outcome}: {text:.300}")

    def files(self) -> list[Path]:
        """The files of the run, without the settings that are reused."""
        paths = [
            path for top in TOPS for path in (self.folder / top).rglob("[!.]*")
        ]
        return sorted(
            p for p in paths if not p.is_dir() and "parts" not in p.parts
        )

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """All files as they were before, afterwards."""
        before = {path: path.read_bytes() for path in self.files()}
        try:
            yield
        finally:
            for path in self.files():
                path.unlink()
            for path, content in before.items():
                path.write_bytes(content)


def outcome_of(
    call: Callable[[], object], refusals: type | tuple
) -> tuple[str, str]:
    """How a call ends: accepted, or refused in few or many lines, or a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except refusals as error:
        text = str(error)
        is_long = not text or text.count("\n") >= LINES or len(text) > 2000
        return (LONG if is_long else SEEN), text
    except Exception as error:
        return TRACEBACK, repr(error)
    return ACCEPTED, ""


# --- the classes ----------------------------------------------------------------------


def data_file(campaign: Campaign) -> None:
    """A data file, spoilt in a few places, is read as finite arrays or refused."""
    name = campaign.chance.choice([*damaged.READERS])
    content, reader = damaged.READERS[name]
    path = campaign.folder / "spoilt"
    path.write_bytes(damaged.spoil(campaign.chance, content, damaged.TOKENS))

    def read() -> None:
        X, y = read_files([path], reader)
        values = X.data if sparse.issparse(X) else X
        assert np.isfinite(values).all() and np.isfinite(y).all() and len(y)

    outcome, text = outcome_of(read, RefusedError)
    campaign.count(
        "data file", f"{name} {path.read_bytes()[:80]!r}", outcome, text
    )


def configuration(campaign: Campaign) -> None:
    """A YAML file, spoilt in a few places, is read or refused."""
    name = campaign.chance.choice(damaged.YAMLS)
    path = campaign.folder / "configuration" / f"{name}.yaml"
    content = path.read_bytes()
    path.write_bytes(
        damaged.spoil(campaign.chance, content, damaged.YAML_TOKENS)
    )
    words = ["problem=diabetes", "scale=smoke"]
    outcome, text = outcome_of(lambda: compose(words), ConfigError)
    campaign.count("configuration", name, outcome, text)
    path.write_bytes(content)


KEYS = ["seed", "output.results", "data.dir", "hydra.run.dir", "scale.folder",
        "problem.privacy.epsilon", "paper.replicates", "paper", "nonsense", "~seed",
        "~paper.tables", "+new", "paper.runs.dp_cd.grid.step"]  # fmt: skip
VALUES = ["", "7", "-1", "0", "nan", "1e400", "/x", "../x", "[1,2", "{a: 1}", "'", '"',
          "null", "${oc.env:HOME}", "x y", "`id`", "$(id)", "é", "9" * 50]  # fmt: skip


def override(campaign: Campaign) -> None:
    """An override of a pipeline is refused, or moves no file of it."""
    chance = campaign.chance
    key = chance.choice(KEYS)
    word = key if key[0] == "~" else f"{key}={chance.choice(VALUES)}"
    words = f"{word} {chance.choice(['', 'seed=8'])}"
    configs: list[object] = []

    def composed() -> None:
        found = workflow.overrides({"scale": "smoke", "set": words})
        configs.append(compose(["paper=tiny", *found]))

    outcome, text = outcome_of(composed, ConfigError)
    for config in configs:
        places = (config.output.results, config.data.dir, config.scale.folder)
        if places != ("results/smoke", "data", "smoke"):
            outcome = SILENT
    campaign.count("override", words, outcome, text)


N = 50
BODY = ("a,y\n" + "".join(f"{i:05d},{i % 3}\n" for i in range(N))).encode()
DIGEST = digest_arrays(np.arange(N)[:, None], np.arange(N) % 3)
MAX_BYTES = 100_000  # bytes of a download


def server(campaign: Campaign) -> None:
    """A hostile server gives the right arrays or a refusal, within the bytes."""
    chance, site = campaign.chance, campaign_site(campaign)
    cut = chance.randrange(len(BODY))
    spoilt = damaged.spoil(chance, BODY, damaged.TOKENS)
    answers = {
        "whole": site.send(BODY),
        "cut": site.send(BODY[:cut], length=len(BODY)),
        "short": site.send(BODY[:cut]),
        "spoilt": site.send(spoilt),
        "error": site.send(b"", chance.choice([400, 403, 404, 429, 500, 503])),
        "endless": site.endless,
        "long": site.send(
            b"1,2\n" * chance.randrange(MAX_BYTES // 4 + 1, MAX_BYTES)
        ),
        "promise": site.send(BODY, length=chance.randrange(MAX_BYTES, 10**15)),
        "loop": site.moved("/far.csv"),
        "file": site.moved("file:///etc/hostname"),
        "garbage": site.send(chance.randbytes(chance.randrange(1, 5000))),
    }
    kind = chance.choice([*answers])
    url = site.put("/far.csv", answers[kind])
    source = Source(origin="http", urls=[url])
    is_declared = chance.random() < 0.5
    dataset = Dataset(
        name="far",
        sources=[source],
        reader=Reader(format="csv", target="y"),
        digest=DIGEST if is_declared else None,
    )
    folder = campaign.folder / "hostile"
    where = Data(
        dir=str(folder),
        timeout=0.3,
        retries=0,
        most_bytes=MAX_BYTES,
        most_seconds=1.0,
    )
    shutil.rmtree(folder, ignore_errors=True)
    records: list[object] = []
    outcome, text = outcome_of(
        lambda: records.append(fetch(dataset, where)), ()
    )
    for record in records:
        outcome = ACCEPTED if record.available else SEEN
        is_other = record.available and is_declared and record.digest != DIGEST
        outcome = SILENT if is_other else outcome
        outcome = (
            LONG
            if "\n" in record.reason or len(record.reason) > 2000
            else outcome
        )
    campaign.count("server", kind, outcome, text)


_SITES: list[Site] = []


def campaign_site(campaign: Campaign) -> Site:
    """The hostile server of this process."""
    if not _SITES:
        _SITES.append(Site())
    return _SITES[0]


def stored_file(campaign: Campaign) -> None:
    """A file of a run, damaged at a random offset, is seen, or read as before."""
    chance = campaign.chance
    path = chance.choice(campaign.files())
    content = path.read_bytes()
    offset = chance.randrange(len(content))
    way = chance.choice(["cut", "flipped", "emptied", "garbled", "deleted"])
    case = f"{way} {path.relative_to(campaign.folder)} at {offset}"
    with campaign.restored():
        if way == "deleted":
            path.unlink()
        else:
            flipped = bytes([content[offset] ^ 1 << chance.randrange(8)])
            path.write_bytes(
                {
                    "cut": content[:offset],
                    "flipped": content[:offset]
                    + flipped
                    + content[offset + 1 :],
                    "emptied": b"",
                    "garbled": chance.randbytes(len(content)),
                }[way]
            )
        _seen_by_verify(campaign, "stored file", case, path, content)


def _seen_by_verify(
    campaign: Campaign, name: str, case: str, path: Path, content: bytes
) -> None:
    """Count whether ``dperm verify`` says something, in a line for each fault."""
    faults: list[str] = []

    def verified() -> None:
        faults.extend(tampered.verified("--json"))

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        outcome, text = outcome_of(verified, verify.NotVerifiedError)
    if faults:
        outcome = LONG if any("\n" in line for line in faults) else SEEN
    elif outcome == ACCEPTED and not _reads_as_before(path, content):
        outcome = SILENT
    campaign.count(name, case, outcome, text or "; ".join(faults))


def _reads_as_before(path: Path, content: bytes) -> bool:
    """Whether a file holds what it held: rows, arrays, values, or bytes."""
    if not path.is_file():
        return False
    with tempfile.TemporaryDirectory() as scratch:
        before = Path(scratch, path.name)
        before.write_bytes(content)
        if path.suffix == ".parquet":
            return store.read_table(path).equals(store.read_table(before))
        if path.suffix == ".json":
            return json.loads(path.read_text()) == json.loads(
                before.read_text()
            )
        if path.suffix in (".npy", ".npz"):
            arrays = [np.load(one) for one in (path, before)]
            parts = [
                dict(one) if path.suffix == ".npz" else {"w": one}
                for one in arrays
            ]
            return all(
                np.array_equal(parts[0][key], parts[1][key])
                for key in parts[1]
            )
    return path.read_bytes() == content


def tampering(campaign: Campaign) -> None:
    """An edit, with digests and manifest made again by a forger, is seen."""
    name = campaign.chance.choice([*tampered.TAMPERED])
    file, tamper, is_again = tampered.TAMPERED[name]
    path = campaign.folder / file
    content = path.read_bytes()
    with campaign.restored():
        tamper(path)
        if is_again:
            (campaign.folder / tampered.MANIFEST).unlink()
            manifest.write(Jobs("", ["tiny"]), 2, 0.0, is_whole=True)
        _seen_by_verify(campaign, "tampering", name, path, content)


# Patterns of the files that a stage makes again.
STAGES = {
    "fetch": "data/fetched/*/*.*",
    "prepare": "data/prepared/*/*.*",
    "optimum": "data/optimum/*/*.*",
    "solve": "results/tiny/diabetes/dp_cd/**/*.parquet",
    "sweep": "results/tiny/sweeps/**/*.parquet",
    "timing": "results/tiny/timing.parquet",
    "figure": "figures/tiny/*.*",
    "table": "results/tiny/errors.csv",
    "complete": "results/tiny/complete.txt",
    "claims": "results/claims.*",
    "report": "results/report/*.*",
}
SIGNALS = {
    "killed": signal.SIGKILL,
    "terminated": signal.SIGTERM,
    "interrupted": signal.SIGINT,
}


def interrupted(campaign: Campaign) -> None:
    """A stage that is killed, or finds no room, is completed to the same bits."""
    chance = campaign.chance
    stage = chance.choice([*STAGES])
    way = chance.choice([*SIGNALS, "no room"])
    case = f"{stage} {way}"
    with tempfile.TemporaryDirectory() as scratch:
        copy = Project.__new__(Project)
        copy.folder = Path(scratch, "copy")
        shutil.copytree(campaign.folder, copy.folder)
        conf = str(copy.folder / "configuration")
        copy.environment = {**os.environ, "DPERM_CONF": conf}
        whole = Project.__new__(Project)
        whole.folder = campaign.folder
        for path in copy.folder.glob(STAGES[stage]):
            path.unlink()
        limit = chance.randrange(1, 3000)

        def hinder() -> None:
            if way == "no room":
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        words = ["solver=dp_cd", "paper=tiny"]
        process = copy.start(stage, *words, preexec_fn=hinder)
        if way in SIGNALS:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.5, 6.0))
            process.send_signal(SIGNALS[way])
        process.wait(300)
        text = (copy.folder / "messages").read_text()
        outcome = TRACEBACK if "Traceback (most recent call" in text else SEEN
        if way == "no room" and process.returncode == 0:
            outcome = ACCEPTED
        campaign.count("interrupted", case, outcome, text[-300:])
        done = copy.run(stage, *words)
        try:
            assert done.returncode == 0, done.stdout
            same_rows(copy, whole)
            for path in _shown(campaign.folder):
                file = path.relative_to(campaign.folder)
                assert (
                    copy.folder / file
                ).read_bytes() == path.read_bytes(), file
            campaign.count("interrupted", case, EQUAL)
        except AssertionError as error:
            campaign.count("interrupted", case, OTHER, str(error))


def _shown(folder: Path) -> list[Path]:
    """The files of a run that are shown: products, verdicts and pages."""
    paths = [
        path for top in TOPS[:2] for path in (folder / top).rglob("[!.]*.*")
    ]
    return [path for path in paths if path.suffix in manifest.TRACKED]


#: classes of faults, with their shares of the number that is tried
CLASSES: dict[Callable[[Campaign], None], float] = {
    data_file: 0.35,
    configuration: 0.2,
    override: 0.15,
    server: 0.1,
    stored_file: 0.1,
    tampering: 0.08,
    interrupted: 0.02,
}


def run(folder: Path, seed: int, count: int) -> Campaign:
    """Try so many faults on a paper that was finished in a folder."""
    campaign = Campaign(folder, random.Random(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("DPERM_CONF", str(folder / "configuration"))
        patch.delenv("DPERM_MIRROR", raising=False)
        for fault, share in CLASSES.items():
            for _ in range(max(1, round(share * count))):
                fault(campaign)
            print(table(campaign).tail(1).to_string(index=False), flush=True)
    while _SITES:
        _SITES.pop().close()
    return campaign


def table(campaign: Campaign) -> pd.DataFrame:
    """The counts, one row a class."""
    names = dict.fromkeys(name for name, _ in campaign.counts)
    rows = []
    for name in names:
        row = {outcome: campaign.counts[name, outcome] for outcome in OUTCOMES}
        resumed = {
            state: campaign.counts[name, state] for state in (EQUAL, OTHER)
        }
        rows.append(
            {"class": name, "tried": sum(row.values()), **row, **resumed}
        )
    return pd.DataFrame(rows)


def main() -> int:
    """Run the campaign and write its table; 1 if a fault was not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=81)
    parser.add_argument("--count", type=int, default=420)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = tampered.finished(Path(scratch, "made"))
        campaign = run(folder, options.seed, options.count)
    counts = table(campaign)
    print(counts.to_string(index=False))
    print("\n".join(campaign.unexpected))
    path = Path("results/faults.csv")
    store.write_csv(path, counts.assign(seed=options.seed))
    manifest.note(path.parent, [path])
    return int(bool(campaign.unexpected))


if __name__ == "__main__":
    raise SystemExit(main())
