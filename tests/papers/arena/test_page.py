"""Every number of docs/arena.md that is no result is one of the code or of the data.

Those of the section of results are in ``tests/documentation/numbers.yaml``.
"""

import re
from pathlib import Path

import pandas as pd
import pytest

from documentation.test_numbers import NUMBER, SECTION, STATED, plain
from dperm.benchmark import peers, race
from dperm.config.config import read
from dperm.estimators import methods
from dperm.experiments.inputs import Inputs, titles
from dperm.papers.arena import ranking, tables

PAGE = Path(__file__).parents[3] / "docs/arena.md"
CELLS = PAGE.parents[1] / "results/arena/arena.csv"
YEARS = re.compile(r"\b(?:19|20)\d\d\b")


@pytest.fixture(scope="module")
def page():
    return plain(PAGE.read_text("utf-8"))


def test_the_data_sets_are_those_of_the_configuration(page, configured):
    config = configured("scale=full", "paper=arena", "problem=breast_tumours")
    names = config.paper.problems
    stored = Inputs(config.data, config.overrides)
    data_sets = {*tables.relatives(stored, names).values()}
    sections = titles(stored, names).values()
    signed = [section.loss == "logistic" for section in sections]
    counts = [section.dataset.sources[0].origin for section in sections]
    told = (
        f"{len(names)} problems on {len(data_sets)} real data sets, {sum(signed)} of "
        f"two classes and {len(names) - sum(signed)} of numbers"
    )
    assert told in page
    assert f"{counts.count('mirror')} problems of the mirror" in page
    assert f"{counts.count('sklearn')} of scikit-learn and" in page
    assert f"and {counts.count('package')} cross sections" in page


def test_sizes_are_those_of_the_cells(page):
    table = pd.read_csv(CELLS)
    sizes = table[
        table["solver" if "solver" in table else "algorithm"].notna()
    ]
    problems = sizes.drop_duplicates("problem")
    n, p = problems["n"].astype(int), problems["p"].astype(int)
    assert (
        f"from {n.min()} to {n.max()} fitted records and {p.min()} to {p.max()} "
        "features"
    ) in page
    numbers = problems[problems["loss"] == "least_squares"]
    enough = (numbers["n"] >= 1000 * numbers["p"]).sum()
    assert (
        f"1000 records a feature; {enough} of the {len(numbers)} problems"
        in page
    )


def test_the_protocol_is_that_of_the_code(page):
    sweep = read("paper", "arena").sweeps["race"]
    assert [*sweep.options["epsilons"]] == [0.3, 1.0, 3.0]
    assert "for epsilon 0.3, 1 or 3 and delta = 1/n²" in page
    assert sweep.options["fresh"] == 5 and "five fits on seeds" in page
    sizes = {len(methods.method(name).grid) for name in methods.ARENA}
    assert (min(sizes), max(sizes)) == (6, 9) and "best of six to nine" in page
    assert race.TUNING_RUNS == 3 and "on three seeds" in page
    assert f"one where X has {race.SLOW} entries or more" in page
    versions = {one.name: one.requires[0].split("==")[1] for one in
                peers.LIBRARIES.values()}  # fmt: skip
    assert f"diffprivlib {versions['diffprivlib']}" in page
    assert f"interpret {versions['interpret']}" in page
    assert f"Below {ranking.EDGES[1]:g} nobody" in page


def test_no_other_number_is_on_the_page():
    """But years, code, links and what the tests above and the list hold."""
    before, _, after = PAGE.read_text("utf-8").partition(
        STATED["docs/arena.md"].get("section", SECTION)
    )
    text = before + after.partition("\n## ")[2]
    text = re.sub(
        r"```.*?```|`[^`]*`|\$[^$]*\$|\]\([^)]*\)", "", text, flags=re.S
    )
    text = YEARS.sub("", plain(text))
    held = (
        r"\d+ problems on \d+ real data sets, \d+ of two classes and \d+ of numbers",
        r"from \d+ to \d+ fitted records and \d+ to \d+ features",
        r"\d+ problems of the mirror|\d+ of scikit-learn and \d+ cross sections",
        r"about 1000 records a feature; \d+ of the \d+ problems",
        r"for epsilon 0.3, 1 or 3 and delta = 1/n²|where X has \d+ entries",
        r"diffprivlib 0.6.6|interpret 0.7.8|Below 30 nobody|its delta is 0",
        r"at 0 a fit is as good as without privacy, from 1 on no better",
        r"not 200 lines|in version 1|lose less than 0",
    )
    for words in held:
        assert re.search(words, text), words
        text = re.sub(words, "", text)
    assert NUMBER.findall(text) == []
