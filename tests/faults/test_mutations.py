"""What is spoilt in conf/ is refused in one line, or means the same.

``make mutations`` tries some of every key and writes ``results/mutations.csv``.
If it is interrupted it goes on, and without the file it begins anew.
"""

import csv
import itertools
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from dperm.core.experiment import locate
from faults.mutations import RIGHT, Judge, mutations

TABLE = os.environ.get("MUTATION_TABLE")  # set by `make mutations`, a whole path
SAMPLE, SEED = 60, 20220202


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """A copy of conf/ that stands alone."""
    shutil.copytree(locate.home() / "conf", tmp_path / "conf")
    monkeypatch.setenv("DPERM_CONF", str(tmp_path / "conf"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "conf"


def test_every_key_of_every_file(conf, monkeypatch):
    """Each spoilt by itself: the copy is left as it was."""
    before = {path: path.read_bytes() for path in conf.rglob("*.yaml")}
    every = list(thinned(mutations(conf)))
    assert len(every) > 2000
    tried = every if TABLE else random.Random(SEED).sample(every, SAMPLE)
    judge, wrong, rows = Judge(conf, monkeypatch), [], read()
    for mutation in tried:
        at = mutation.file, mutation.key, mutation.kind
        outcome, said = rows.get(at), ""
        if outcome not in RIGHT:
            outcome, said = judge.outcome(mutation)
            note(rows, at, outcome)
        if outcome not in RIGHT:
            wrong.append((*at, outcome, said[:300]))
            print(*wrong[-1], flush=True)
    counted = Counter((key[2], outcome) for key, outcome in rows.items())
    print(*(f"{kind} {word}: {n}" for (kind, word), n in counted.items()), sep="\n")
    assert not wrong, "\n".join(map(str, wrong))
    assert before == {path: path.read_bytes() for path in conf.rglob("*.yaml")}
    assert [path.name for path in Path().iterdir()] == ["conf"]


def thinned(found):
    """Three of every key; of papers and their claims, which are long, one."""
    chance = random.Random(SEED)
    for (file, _), group in itertools.groupby(found, lambda one: (one.file, one.key)):
        every = list(group)
        yield from chance.sample(every, min(len(every), 1 if "paper/" in file else 3))


def read() -> dict[tuple, str]:
    """What an earlier run found: it goes on where that one was."""
    if not TABLE or not Path(TABLE).is_file():
        return {}
    with open(TABLE) as handle:
        return {(r["file"], r["key"], r["mutation"]): r["outcome"]
                for r in csv.DictReader(handle)}  # fmt: skip


def note(rows, at, outcome):
    """Note an outcome, in the table as well."""
    rows[at] = outcome
    if not TABLE:
        return
    is_new = not Path(TABLE).exists()
    with open(TABLE, "a", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        if is_new:
            writer.writerow(("file", "key", "mutation", "outcome"))
        writer.writerow((*at, outcome))
