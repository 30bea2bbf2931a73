"""A solver of one's own that leaks does not run; the example does."""

import importlib
import logging
import sys
from pathlib import Path

import numpy as np
import pytest

import dperm
from dperm.audit.leaks import LeakError, refuse_leaks
from dperm.config.locate import ConfigError

MINE = Path(__file__).parents[2] / "docs/examples/mine/noisy_gd.py"
SUM = "self.records.gradient(w, self.clip[k]) / self.problem.n"
DECLARED = {"classes": (-1, 1), "bounds": (-2, 2)}
UNCLIPPED = (SUM, SUM.replace("self.clip[k])", "1e12)"))
ANEW = ("self.records.gradient(", "Records(self.problem).gradient(")
FEW = ("noise_multiplier, count,", "noise_multiplier, count - 1,")
NO_NOISE = ("self.scale[k] * noise", "0.0")
LEAKS = {  # each of them: changes of the text
    "unclipped": [UNCLIPPED],
    "unclipped, records made anew in every step": [UNCLIPPED, ANEW],
    "NaN is handed on": [(SUM, "self.by_hand(w, self.clip[k])")],
    "no noise": [NO_NOISE],
    "a release too few is stated": [FEW],
    "starts at the data": [
        (
            "        self.weights = np.zeros((len(settings.step), problem.p))\n",
            "        start = -5.0 * problem.gradient(np.zeros(problem.p))\n"
            "        self.weights = np.tile(start, (len(settings.step), 1))\n",
        )
    ],
    "steps by the data": [
        (
            "        self.step = settings.step / problem.global_smoothness\n",
            "        self.step = settings.step / problem.row_norms.max()\n",
        )
    ],
    "reads the data after the last release": [
        (
            "    def advance(self, count):",
            "    @property\n    def weights(self):\n"
            "        return self.w + 1e-2 * self.problem.A[:1]\n\n"
            "    @weights.setter\n    def weights(self, w):\n        self.w = w\n\n"
            "    @property\n    def released(self):\n        return self.w\n\n"
            "    def advance(self, count):",
        )
    ],
}
BY_HAND = '''
    def by_hand(self, w, clip):
        """As it was before: a clip that hands NaN on."""
        problem = self.problem
        with np.errstate(all="ignore"):
            slopes = problem.derivatives(problem.A @ w + problem.offset)
            most = clip / np.maximum(problem.row_norms, 1e-300)
            return problem.A.T @ np.clip(slopes, -most, most) / problem.n
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write a solver of one's own, some text changed; its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    names = []

    def make(*changes, more=""):
        text = MINE.read_text()
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        names.append(f"mine_{tmp_path.name}_{len(names)}")
        (tmp_path / f"{names[-1]}.py").write_text(text + BY_HAND + more)
        return names[-1]

    yield make
    for name in names:
        sys.modules.pop(name, None)


def test_the_example_is_held(own):
    for name in (own(), own(ANEW)):
        refuse_leaks(name, name, {})
    X, y = np.ones((40, 2)), np.tile([1.0, -1.0], 20)
    module = importlib.import_module(name)
    assert dperm.fit(X, y, module, random_state=0, **DECLARED).coef_.shape == (
        1,
        2,
    )


@pytest.mark.parametrize("leak", LEAKS)
def test_one_that_leaks_is_refused_before_it_runs(own, leak):
    """A neighbour is run from its own start; only declared constants are public."""
    name = own(*LEAKS[leak])
    with pytest.raises(LeakError, match=f"solver {name}: .*UNCHECKED"):
        refuse_leaks(name, name, {})
    module = importlib.import_module(name)
    with pytest.raises(ConfigError, match="UNCHECKED"):
        dperm.fit(
            np.ones((40, 2)), np.tile([1.0, -1.0], 20), module, **DECLARED
        )


def test_one_that_says_why_runs_unchecked(own, caplog):
    name = own(NO_NOISE, more="\nUNCHECKED = 'a baseline without privacy'\n")
    with caplog.at_level(logging.WARNING):
        refuse_leaks(name, name, {})
    assert "not held to its ledger: a baseline without privacy" in caplog.text
