"""What is spoilt in conf/ is refused in one line, or means the same.

``make mutations`` tries all and writes ``results/mutations.csv``.
"""

import csv
import itertools
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from dperm import locate
from faults.mutations import RIGHT, Judge, mutations

TABLE = os.environ.get("MUTATION_TABLE")  # set by `make mutations`
SAMPLE, SEED = 60, 20220202


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """A copy of conf/ that stands alone."""
    shutil.copytree(locate.home() / "conf", tmp_path / "conf")
    monkeypatch.setenv("DPERM_CONF", str(tmp_path / "conf"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "conf"


def test_every_key_of_every_file(conf, monkeypatch):
    every = list(thinned(mutations(conf)))
    assert len(every) > 2000
    tried = every if TABLE else random.Random(SEED).sample(every, SAMPLE)
    judge, rows, wrong = Judge(conf, monkeypatch), [], []
    for mutation in tried:
        outcome, said = judge.outcome(mutation)
        rows.append((mutation.file, mutation.key, mutation.kind, outcome))
        if outcome not in RIGHT:
            wrong.append((*rows[-1], said[:300]))
            print(*wrong[-1], flush=True)
    if TABLE:
        write(rows)
    assert not wrong, "\n".join(map(str, wrong))


def thinned(found):
    """All of them, but for the papers, which are long: two or one of every key."""
    chance = random.Random(SEED)
    for (file, _), group in itertools.groupby(found, lambda one: (one.file, one.key)):
        every = list(group)
        count = 1 if file.endswith("claims.yaml") else 2
        few = file.startswith("paper/") and len(every) > count
        yield from chance.sample(every, count) if few else every


def write(rows):
    with open(TABLE, "w", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(("file", "key", "mutation", "outcome"))
        writer.writerows(rows)
    counted = Counter((kind, outcome) for _, _, kind, outcome in rows)
    for (kind, outcome), count in sorted(counted.items()):
        print(kind, outcome, count)


def test_the_copy_is_left_as_it_was(conf, monkeypatch):
    before = {path: path.read_bytes() for path in conf.rglob("*.yaml")}
    judge = Judge(conf, monkeypatch)
    for mutation in random.Random(SEED).sample(list(mutations(conf)), 5):
        judge.outcome(mutation)
    assert before == {path: path.read_bytes() for path in conf.rglob("*.yaml")}
    assert [path.name for path in Path().iterdir()] == ["conf"]
