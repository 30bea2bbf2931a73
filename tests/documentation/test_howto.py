"""What the how-tos print is what the example folder holds."""

import importlib
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import dperm
from dperm.audit.leaks import LeakError, refuse_leaks
from dperm.config.config import compose
from dperm.data import load_prepared
from dperm.experiments import inputs

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("[!_a]*/*.md")]


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("data-set", "mine/conf/problem/yields.yaml"),
        ("algorithm", "mine/conf/solver/noisy_gd.yaml"),
    ],
)
def test_the_page_prints_the_file(page, file):
    text = (DOCS / "examples" / file).read_text().rstrip()
    assert f"\n{text}\n```" in (DOCS / "howto" / f"{page}.md").read_text()


@pytest.mark.parametrize("file", ["spam", "flats"])
def test_the_page_prints_how_the_file_is_read(file):
    text = (DOCS / f"examples/formats/conf/problem/{file}.yaml").read_text()
    reader = re.search(r"\n  reader: .*\n", text)[0]
    assert reader in (DOCS / "howto/data-set.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files_and_headings(page):
    text = page.read_text()
    links = re.findall(r"\]\((?!https?:)([^)\s]+)\)", text)
    links += re.findall(r"{literalinclude} (\S+)", text)
    for link in links:
        path, _, heading = link.partition("#")
        other = page.parent / path if path else page
        assert other.exists(), link
        if heading:
            heads = re.findall(r"^#+ (.*)$", other.read_text(), re.M)
            slugs = [re.sub(r"[^\w -]", "", one.lower()) for one in heads]
            assert heading in [one.replace(" ", "-") for one in slugs], link


def prepared(name, tmp_path, monkeypatch):
    monkeypatch.chdir(DOCS / "examples/formats")
    config = compose([f"problem={name}", f"data.dir={tmp_path}"])
    inputs.fetch(config)
    inputs.prepare(config)
    return load_prepared(name, config.data)


def test_the_libsvm_example_is_what_the_page_says(tmp_path, monkeypatch):
    made = prepared("spam", tmp_path, monkeypatch)
    assert sparse.issparse(made.X) and made.y.tolist() == [
        -1.0,
        1.0,
        1.0,
        -1.0,
    ]
    expected = [[0.5, 0, 2, 0], [0, 1, 0, 0], [1.5, 0.5, 1, 0], [0, 0, 4, 0]]
    assert np.array_equal(made.X.toarray(), expected)


def test_the_example_of_categories_is_what_the_page_says(
    tmp_path, monkeypatch
):
    made = prepared("flats", tmp_path, monkeypatch)
    assert made.y.tolist() == [700.0, 900.0, 1100.0, 1300.0]
    rows = [[2, 1, 0, 0], [3, 0, 1, 0], [1, 1, 0, 0], [4, 0, 0, 1]]
    assert made.X.tolist() == rows  # rooms, gas, oil, wood


def test_the_first_fit_prints_what_its_page_says(
    tmp_path, monkeypatch, capsys
):
    """On a file as its comment describes it."""
    page = (DOCS / "howto/fit.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.S)[1]
    told = re.search(r"prints\s`(epsilon at most [^`]*)`", page)[1]
    rng, n = np.random.default_rng(0), 5000
    age, income = rng.integers(18, 91, n), rng.uniform(0, 1e5, n).round()
    left = (rng.uniform(size=n) < 1 / (1 + np.exp((age - 50) / 10))).astype(
        int
    )
    table = pd.DataFrame({"age": age, "income": income, "left": left})
    monkeypatch.chdir(tmp_path)
    table.to_csv("mine.csv", index=False)
    made: dict[str, object] = {}
    exec(code, made)
    assert capsys.readouterr().out.split() == told.split()
    model = made["model"]
    assert isinstance(model, dperm.DPClassifier)
    assert model.score(table[["age", "income"]], left) > 0.7


def test_the_recipe_for_text_and_gaps_fits():
    """On a frame with a city, ages with gaps, and incomes, as its comment says."""
    page = (DOCS / "howto/fit.md").read_text()
    (code,) = re.findall(r"```python\n(fill = .*?)```", page, re.S)
    rng, n = np.random.default_rng(0), 400
    age = rng.integers(18, 91, n).astype(float)
    age[:20] = np.nan
    city = rng.choice(["A", "B", "C"], n)
    frame = pd.DataFrame(
        {"city": city, "age": age, "income": rng.uniform(0, 1e5, n)}
    )
    names = {
        "dperm": dperm,
        "df": frame,
        "y": np.where(city == "A", "yes", "no"),
    }
    for module in ("compose", "impute", "pipeline", "preprocessing"):
        names |= vars(importlib.import_module(f"sklearn.{module}"))
    exec(code, names)
    columns = names["columns"].transform(frame)
    assert columns.shape == (n, len(names["bounds"]))
    assert columns[:, 3].sum() == 20  # the gaps


def test_the_page_quotes_how_a_solver_is_refused(tmp_path, monkeypatch):
    code = (DOCS / "examples/mine/noisy_gd.py").read_text()
    assert "gradient(w, self.clip[k])" in code
    wrong = code.replace(
        "gradient(w, self.clip[k])", "gradient(w, 10 * self.clip[k])"
    )
    (tmp_path / "clips_ten_times.py").write_text(wrong)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LeakError) as refused:
        refuse_leaks("mine", "clips_ten_times", {})
    quoted = f"\ndperm: {str(refused.value).partition('; ')[0]}; ...\n"
    assert quoted in (DOCS / "howto/algorithm.md").read_text()


def test_the_audit_of_a_function_needs_only_what_its_page_installs():
    """It runs in an environment of another library, without most of ours."""
    page = (DOCS / "howto/audit.md").read_text()
    command = re.search(r"pip install ((?:.*\\\n)?.*)\n", page)[1]
    code = "import dperm.audit.blackbox, sys; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    used, known = set(ran.stdout.split()), packages_distributions()
    others = (
        "numba",
        "dp_accounting",
        "hydra",
        "omegaconf",
        "snakemake",
        "matplotlib",
    )
    assert not used & {*others}
    for name in ("pandas", "platformdirs", "sklearn", "threadpoolctl", "yaml"):
        assert name not in used or known[name][0].lower() in command
