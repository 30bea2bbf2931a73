"""``dperm audit module:function``: verdict, files, exit codes, one line of refusal."""

import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from commands import dperm
from dperm import cli
from dperm.audit import blackbox, command, proofs
from dperm.audit.blackbox import PrivacyClaim
from dperm.audit.command import NOT_REFUTED, REFUSED, REFUTED
from dperm.audit.functions import Domain, load
from weekly import variants

MINE = """
import multiprocessing
import os
import time
from pathlib import Path
import numpy as np

Path("imported").touch()
print("imported")

def half(X, y, seed):
    noise = np.random.default_rng(seed).laplace(0, 1 / len(X), X.shape[1])
    return np.clip(X, -1, 1).mean(axis=0) + noise

def forks(X, y, seed):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return whole(pool.apply(np.copy, (X,)), y, seed)

def whole(X, y, seed):
    noise = np.random.default_rng(seed).laplace(0, 2 / len(X), X.shape[1])
    return np.clip(X, -1, 1).mean(axis=0) + noise

def words(X, y, seed):
    return "weights"

def hollow(X, y, seed):
    return []

def silent(X, y, seed):
    half(X, y, seed)

def never(X, y, seed):
    raise RuntimeError("not today")

def leaves(X, y, seed):
    raise SystemExit("goodbye")

def exits(X, y, seed):
    os._exit(0)

def slow(X, y, seed):
    time.sleep(0.5)
    return whole(X, y, seed)

def sticks(X, y, seed):
    if (X[0] > 2).any():
        stubborn(X, y, seed)
    return half(X, y, seed)

def stubborn(X, y, seed):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("of_mine.py").write_text(MINE)
    yield tmp_path
    sys.modules.pop("of_mine", None)


def call(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["dperm", "audit", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


@pytest.mark.parametrize(
    "place", variants(["of_mine:half", "of_mine.py:half"], ["of_mine:half"])
)
def test_a_refutation_leaves_its_proof(here, monkeypatch, capsys, place):
    code = call(
        monkeypatch, place, "--epsilon", "1", "--p", "1", "--out", "proof"
    )
    assert code == REFUTED
    said = capsys.readouterr().out
    assert (
        said.startswith(f"REFUTED: {place}")
        and "epsilon >= 2 at delta 0" in said
    )
    kept = Path("proof/verdict.txt").read_text()
    assert kept == f"dperm audit {place} --epsilon 1 --p 1 --out proof\n{said}"
    one, two = (
        np.loadtxt(f"proof/{name}.csv", delimiter=",", skiprows=1)
        for name in ("D", "D_prime")
    )
    assert (one != two).any(axis=1).sum() == 1


@pytest.mark.parametrize(
    ("place", "words", "code"),
    [
        ("json.py:half", (), REFUTED),  # the name of a module that is loaded
        ("of_mine:forks", ("--seconds", "2"), NOT_REFUTED),
        ("of_mine:whole", ("--seconds", "1"), NOT_REFUTED),
    ],
)
def test_the_verdict_is_the_exit_code(
    here, monkeypatch, capsys, place, words, code
):
    Path("json.py").write_text(MINE)
    assert (
        call(monkeypatch, place, "--epsilon", "1", "--p", "1", *words) == code
    )
    verdict = {REFUTED: "REFUTED", NOT_REFUTED: "not refuted"}[code]
    assert capsys.readouterr().out.startswith(f"{verdict}: {place}")


EPSILON, BRIEF = ("--epsilon", "1"), ("--epsilon", "1", "--seconds", "1")
LONGER = (*BRIEF, "--n", "2")
SHORT = ("--epsilon", "1", "--seconds", "0.5")


@pytest.mark.parametrize(
    ("place", "words", "text"),
    [
        ("of_mine:half", (), "required: --epsilon"),
        (
            "of_mine:half",
            ("--epsilon", "0"),
            "--epsilon: 0: expected more than 0",
        ),
        ("of_mine:half", (*EPSILON, "--delta", "2"), "--delta: 2: expected"),
        ("of_mine:half", (*EPSILON, "--x-bound", "2:1"), "LOW:HIGH"),
        ("of_mine:half", (*EPSILON, "--norm", "l2"), "expected --x-bound"),
        (
            "of_mine:half",
            (*EPSILON, "--n", "1"),
            "--n: 1: expected more than 1",
        ),
        ("of_mine", BRIEF, "expected module:function"),
        ("of_mine:nothing", BRIEF, "expected a function nothing"),
        ("nowhere_at_all:fit", BRIEF, "does not import: ModuleNotFoundError"),
        ("of_mine:words", BRIEF, "expected numbers, found str"),
        ("of_mine:hollow", BRIEF, "expected numbers, found none"),
        pytest.param(
            *(
                "of_mine:silent",
                BRIEF,
                "the output: expected numbers, found None",
            ),
            marks=pytest.mark.long,
        ),
        ("of_mine:never", LONGER, "RuntimeError: not today"),
        pytest.param(
            *("of_mine:leaves", BRIEF, "SystemExit: goodbye"),
            marks=pytest.mark.long,
        ),
        ("of_mine:exits", BRIEF, "of_mine:exits: it ended its own process"),
        ("of_mine:stubborn", SHORT, "its first runs took more than 2 seconds"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_one_line(
    here, monkeypatch, capsys, place, words, text
):
    """Bad arguments before the module is imported."""
    monkeypatch.setattr(command, "GRACE", 1.0)
    assert call(monkeypatch, place, *words) == REFUSED
    said = capsys.readouterr().err
    assert text in said and len(said.splitlines()) == 1
    assert "--seconds" in words or not Path("imported").exists()


@pytest.mark.parametrize("name", variants(["slow", "sticks"], ["sticks"]))
def test_the_time_is_kept_and_progress_is_told(
    here, monkeypatch, capsys, name
):
    """Of a slow function, and of one that never ends on some records."""
    monkeypatch.setattr(blackbox, "OFTEN", 0.0)
    monkeypatch.setattr(command, "GRACE", 1.0)
    began = time.perf_counter()
    given = ("--epsilon", "9", "--p", "1", "--seconds", "1")
    assert call(monkeypatch, f"of_mine:{name}", *given) == NOT_REFUTED
    assert time.perf_counter() - began < 12
    said = capsys.readouterr()
    assert "of 1 seconds of CPU, " in said.err and "epsilon >= " in said.err
    # On a busy machine a slow run, too, is broken off before it ends.
    assert re.search("(stopped by the clock|broken off) after 4", said.out)
    assert name != "sticks" or "broken off after 4 " in said.out


COUNTED = """
import secrets
import numpy as np

def fit(X, y, seed):
    u = int.from_bytes(secrets.token_bytes(6), "big") / 2**48 - 0.5
    noise = -2 * np.sign(u) * np.log1p(-2 * abs(u))
    return np.clip(X, -1, 1).sum() + noise
"""


def test_a_verdict_says_first_that_nothing_was_replayed(
    here, monkeypatch, capsys
):
    Path("counted.py").write_text(COUNTED)
    first = []
    for place in ("counted.py:fit", "of_mine:whole"):
        call(monkeypatch, place, *BRIEF, "--p", "1")
        first.append(capsys.readouterr().out.splitlines()[0])
    says = ["no draw was replayed: counted only" in line for line in first]
    assert says == [True, False]


def test_the_command_tells_a_function_from_a_solver(here):
    done = dperm("audit", "of_mine:half", "--epsilon", "1", "--p", "1")
    assert done.returncode == REFUTED, done.stderr
    assert Path("results/audit/functions/of_mine-half/D.csv").is_file()


def test_all_tests_of_an_audit_share_its_level(here, monkeypatch):
    """All counts err by 1 - confidence at most."""
    spent = []

    def judged(event, first, second, level, delta):
        spent.append(level)
        return proofs.Bound(0.0, event.text)

    monkeypatch.setattr(proofs, "judge", judged)
    claim = PrivacyClaim(9.0, 1e-6, confidence=0.9, seconds=1e9, runs=6000)
    verdict = blackbox.audit(load("of_mine:half"), claim, Domain())
    assert not verdict.refuted and len(spent) >= 12
    # Others rank pairs; the trade-off of the last count takes another quarter.
    assert sum(level for level in spent if level < 0.5) <= 0.1 * 3 / 4
