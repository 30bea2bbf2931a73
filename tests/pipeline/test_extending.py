"""What is added to the package touches nothing that is there: no stage is stale."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DIGESTS = """
import json, sys
from dperm.core.experiment.locate import available
from dperm.pipeline.jobs import compose
papers = sys.argv[1:] or available("paper")
jobs = compose(papers, ["scale=smoke"]).jobs
print(json.dumps({name: job.key for name, job in jobs.items()}))
"""

CALIBRATION = '''
"""Twice what is proved to suffice."""

from dperm.core.privacy import strict


def epsilon(ledger, delta):
    """Return twice the strict epsilon."""
    return 2 * strict.epsilon(ledger, delta)
'''


class Copy:
    """A copy of the package, run as a reader's own is."""

    def __init__(self, root: Path):
        self.root, self.losses = root, root / "src/dperm/core/erm/losses"
        for name in ("src", "conf"):
            shutil.copytree(
                ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__")
            )

    def digests(self, *papers: str) -> dict[str, str]:
        """Of all stages of papers, or of all of them."""
        done = subprocess.run(
            [sys.executable, "-c", DIGESTS, *papers],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("copy"))


def test_what_is_added_makes_no_other_stage_stale(copy):
    before = copy.digests()
    (copy.root / "twice.py").write_text(CALIBRATION)
    text = "name: twin\nlabel: DP-CD\nalgorithm: dp_cd\n"
    (copy.root / "conf/solver/twin.yaml").write_text(text)
    shutil.copy(copy.losses / "logistic.py", copy.losses / "another.py")
    after = copy.digests()
    assert len(before) > 150
    stale = [name for name, digest in before.items() if after[name] != digest]
    assert stale == ["audit/epsilon"]  # the table of all solvers
    assert set(after) - set(before) == {"audit/solvers/twin"}


def test_an_edit_of_a_loss_makes_those_stale_whose_problem_has_it(copy):
    before, path = copy.digests("dpcd"), copy.losses / "logistic.py"
    text = path.read_text()
    assert text.count("softplus(-v)") == 1
    path.write_text(text.replace("softplus(-v)", "2.0 * softplus(-v)"))
    after = copy.digests("dpcd")
    path.write_text(text)
    stale = {name for name, digest in before.items() if after[name] != digest}
    optima = {name for name in before if name.startswith("optimum/")}
    assert 0 < len(stale & optima) < len(optima)
    assert any(name.startswith("solve/dpcd/") for name in stale)
