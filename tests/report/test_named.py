"""Arguments of proofs and rules: a paper's own, the shared, and names there are not."""

from __future__ import annotations

import importlib
import sys

import pandas as pd
import pytest
import yaml

from dperm import papers
from dperm.core.experiment import config as configuration
from dperm.core.experiment.locate import ConfigError
from dperm.report import claims, judging, rules
from dperm.report.evidence import NOT, REPRODUCED, Evidence
from dperm.report.rules import measures
from dperm.store import closure

from .conftest import write

RULES = """
from dperm.report.rules import NOTHING_LEARNT
from dperm.report.evidence import Estimate
from dperm.report.rules import rule
from dperm.report.evidence import REPRODUCED, Finding


def always(evidence, number):
    return Finding(REPRODUCED, "so it is", Estimate.exactly(number))


@rule(NOTHING_LEARNT, reason="{factor} times: ")
def times(part, read, factor: float):
    return Estimate.exactly(factor * read(part, {"algorithm": "quick"}).value)
"""
PROOFS = """
from dperm.kinds.proofs import Case


def lemma(epsilon):
    return Case(2 * epsilon, epsilon, "twice")
"""
ENTRY = {"place": "Lemma 1", "claim": "It holds"}


def paper(name):
    return configuration.compose([f"paper={name}"])


def test_the_worst_case_decides():
    evidence = Evidence(paper("dpgcd"))
    found = measures.proof(evidence, "noisy_max_step", gap=[2, 200], pure=[0.1, 0.2])
    assert found.verdict == NOT
    assert "(gap 200, pure 0.1; 4 cases)" in found.reason  # lists are crossed
    held = measures.printed_noise(evidence, "theorem_gaussian", epsilon=1.0, delta=1e-6)
    assert held.verdict == REPRODUCED


def test_a_paper_has_its_own_arguments_and_the_shared():
    given = {"epsilon": 1.0, "delta": 1e-6}
    rules.check(paper("dpsco"), "proof", {"argument": "theorem_gaussian", **given})
    own = {"argument": "generalised_gaussian", "kappa": 1, **given}
    rules.check(paper("dpsco"), "proof", own)
    with pytest.raises(ConfigError, match="found 'generalised_gaussian'"):
        rules.check(paper("dpgcd"), "proof", own)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A paper in a folder of one's own, with a rule and a proof of its own."""
    folder = tmp_path / "conf" / "paper" / "sixth"
    folder.mkdir(parents=True)
    for name, text in (("rules", RULES), ("proofs", PROOFS), ("__init__", "")):
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(folder.parent)])
    monkeypatch.setattr(claims, "paper_file", lambda _, name: folder / name)
    importlib.invalidate_caches()
    config = configuration.compose(["paper=dpcd"])
    config.paper.name, config.paper.claims = "sixth", "claims.yaml"
    config.output.results = str(tmp_path / "results")

    def make(*entries):
        (folder / "claims.yaml").write_text(yaml.safe_dump(list(entries)))
        return config

    yield make
    for name in [each for each in sys.modules if "papers.sixth" in each]:
        del sys.modules[name]
    closure.known.cache_clear()


def test_a_paper_of_ones_own_brings_rules_and_proofs(own):
    config = own(
        ENTRY | {"rule": "always", "options": {"number": 2.0}},
        ENTRY | {"rule": "proof", "options": {"argument": "lemma", "epsilon": [1, 2]}},
        ENTRY | {"rule": "value", "options": {"file": "table"}},
    )
    first, second, third = judging.judged(config)
    assert (first["verdict"], first["reproduced"]) == (REPRODUCED, 2.0)
    assert second["verdict"] == NOT and second["reason"].endswith("twice")
    assert "is not there" in third["reason"]
    with pytest.raises(ConfigError, match="found 'always'"):
        rules.check(paper("dpcd"), "always", {"number": 2.0})


def test_a_rule_of_ones_own_says_only_what_it_measures(own):
    options = {"file": "table", "each": "problem", "factor": 10.0, "at_most": 3}
    with pytest.raises(ConfigError, match="expects: name the groups of problem"):
        list(judging.judged(own(ENTRY | {"rule": "times", "options": options})))
    options["where"] = {"problem": ["a", "b"]}
    config = own(
        ENTRY | {"rule": "times", "options": options},
        ENTRY | {"rule": "times", "options": options | {"factor": 20.0}},
        ENTRY | {"rule": "times", "options": options | {"value": "other"}},
    )
    rows = {"problem": ["a", "b", "b"], "algorithm": ["quick", "quick", "slow"],
            "mean": [0.2, 0.1, 9.0], "other": [0.01, 0.01, 0.01]}  # fmt: skip
    write(config, "table", pd.DataFrame(rows))
    first, second, third = judging.judged(config)
    assert (first["verdict"], first["reproduced"]) == (REPRODUCED, 2.0)
    assert first["control"] == "fails for w = 0, for all"
    assert "10.0 times: expected at most 3; 2 of 2 hold; a: 2; b: 1" in first["reason"]
    assert second["verdict"] == NOT and third["reproduced"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("rule", "options", "text"),
    [
        ("alway", {"number": 1}, r"rule: .*found 'alway' \(did you mean always\?"),
        ("always", {"numbr": 1}, r"options \['number'\] missing"),
        ("always", {"number": 1, "at": 2}, r"unknown options \['at'\]"),
        ("times", {"file": "table"}, r"options \['factor'\] missing"),
        ("times", {"file": "x", "factor": "two"}, "factor: expected a number"),
        ("times", {"file": "x", "factor": 2, "atmost": 1}, r"options \['atmost'\]"),
        ("proof", {"argument": "lema", "epsilon": 1}, r"did you mean lemma\?"),
        ("proof", {"argument": "lemma"}, r"options \['epsilon'\] missing"),
        ("printed_noise", {"argument": "lemma", "epsilon": 1}, "found 'lemma_noise'"),
    ],
)
def test_what_there_is_not_is_refused_with_file_and_key(own, rule, options, text):
    config = own(ENTRY | {"rule": rule, "options": options})
    place = r"conf/paper/sixth/claims\.yaml: claim 1: "
    with pytest.raises(ConfigError, match=place + f".*{text}"):
        claims.load(config)
