# ruff: noqa: E501
"""Files in every odd form, from the YAML to the figure."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from dperm.core.experiment.config import compose
from dperm.data import load_prepared
from dperm.pipeline import inputs, products, stages

N, MARK = 24, "\ufeff"
CHANCE = np.random.default_rng(5)
X = CHANCE.integers(-4, 5, (N, 3)) + 0.5
SIGNS = np.where(X @ [1.0, -2.0, 0.5] + CHANCE.normal(0, 3, N) > 0, 1, -1)
Y = X @ [1.0, -2.0, 0.5] + CHANCE.normal(0, 1, N)
LOGISTIC, SQUARES = ("logistic", {"l2": 0.1}), ("least_squares", {"l1": 0.05})


def table(y, separator=",", end="\n", last="", head="a,b,c,y", quote=""):
    """A text table of X and y."""
    lines = [separator.join(head.split(","))] if head else []
    for row, target in zip(X.tolist(), y, strict=True):
        fields = [f"{quote}{value}{quote}" for value in (*row, target)]
        lines.append(separator.join(fields) + last)
    return end.join(lines) + end


def sparse_rows(labels, first=1, end="\n"):
    rows = (
        " ".join(f"{j}:{v}" for j, v in enumerate(row, first)) for row in X.tolist()
    )
    return end.join(f"{one} {row}" for one, row in zip(labels, rows, strict=True)) + end


def with_gaps():
    """A column of colours, and every fifth value of a column gone."""
    lines = table(Y, head="a,b,c,y").splitlines()
    made = ["colour," + lines[0]]
    for i, line in enumerate(lines[1:]):
        fields = line.split(",")
        fields[1] = "NA" if i % 5 == 2 else fields[1]
        made.append(f"{('red', 'green')[i % 2]}," + ",".join(fields))
    return "\n".join(made)


def arff(rows, kind="numeric"):
    head = "".join(f"@attribute '{name} x' numeric\n" for name in "abc")
    return f"% odd\n@relation r\n{head}@attribute class {kind}\n@data\n{rows}"


def arff_gaps():
    rows = table(np.where(SIGNS > 0, "yes", "no"), head="").splitlines()
    rows[3] = rows[3].replace(rows[3].split(",")[0], "?", 1)
    rows[7] = ",".join([*rows[7].split(",")[:3], "?"])
    return MARK + arff("\r\n".join(rows), "{no,yes}")


def sparse_arff():
    rows = zip(X.tolist(), np.where(SIGNS > 0, "yes", "no"), strict=True)
    listed = ((", ".join(f"{j} {v}" for j, v in enumerate(row)), y) for row, y in rows)
    return arff("\n".join(f"{{{text}, 3 {y}}}" for text, y in listed), "{no,yes}")


def write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("deep/wanted.csv", table(Y))
        archive.writestr("other.csv", table(SIGNS))


def write_npz(path):
    np.savez_compressed(path, X=X, y=Y)


# name: files and what writes them, source and reader beside them, the problem
CSV = {"format": "csv"}
ODD = {
    "bom_crlf_quotes": ({"a.csv": MARK + table(Y, end="\r\n", quote='"')}, {}, CSV, SQUARES),
    "trailing_commas": ({"b.csv": table(Y, last=",")}, {}, CSV, SQUARES),
    "semicolons": (
        {"c.csv": table(np.where(SIGNS > 0, "up ", "down"), ";", head=" a,b , c,y ")}, {},
        {**CSV, "positive": "up", "options": {"separator": ";"}}, LOGISTIC),
    "gaps_and_colours": (
        {"d.csv": with_gaps()}, {},
        {**CSV, "missing": "median", "categories": {"colour": ["red", "green"]}}, SQUARES),
    "no_header": (
        {"e.tsv": table(SIGNS, "\t", head="")}, {},
        {**CSV, "options": {"separator": "\t", "header": False}}, LOGISTIC),
    "members": ({"f.zip": write_zip}, {"members": ["wanted.csv"]}, CSV, SQUARES),
    "marked_libsvm": (
        {"g": MARK + "# head\r\n\r\n" + sparse_rows(SIGNS, end=" # x\r\n")}, {},
        {"format": "libsvm"}, LOGISTIC),
    "zero_based_gz": (
        {"h.gz": gzip.compress(sparse_rows(np.where(SIGNS > 0, 2, 1), 0).encode())}, {},
        {"format": "libsvm", "positive": 2, "options": {"zero_based": True}}, LOGISTIC),
    "two_parts": (
        {"i.1": sparse_rows(SIGNS), "i.2": "1 1:1\n-1 2:1\n"}, {},
        {"format": "libsvm", "options": {"dense": True}}, LOGISTIC),
    "arff_gaps": (
        {"j.arff": arff_gaps()}, {},
        {"format": "arff", "positive": "yes", "missing": "drop"}, LOGISTIC),
    "sparse_arff": (
        {"k.arff": sparse_arff()}, {}, {"format": "arff", "positive": "yes"}, LOGISTIC),
    "packed_arrays": ({"l.npz": write_npz}, {}, {"format": "arrays"}, SQUARES),
}  # fmt: skip


def put(name, conf):
    """Its files and its YAML."""
    files, source, reader, (loss, penalty) = ODD[name]
    for file, content in files.items():
        if callable(content):
            content(Path(file))
        else:
            raw = content if isinstance(content, bytes) else content.encode()
            Path(file).write_bytes(raw)
    source = {"kind": "file", "files": list(files), **source}
    problem = {"name": name, "title": name, "loss": loss, "penalty": penalty,
               "dataset": {"name": name, "sources": [source], "reader": reader}}  # fmt: skip
    (conf / "problem" / f"{name}.yaml").write_text(yaml.safe_dump(problem))


@pytest.fixture
def chain(tmp_path, monkeypatch):
    """Runs problems through all stages; the tables behind the figure."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPERM_CONF", raising=False)
    conf = tmp_path / "conf"
    (conf / "problem").mkdir(parents=True)
    (conf / "paper/odd").mkdir(parents=True)

    def run(names):
        for name in names:
            put(name, conf)
        grid = {"passes": [2], "step": [0.1, 0.5], "clip": [1.0, 5.0]}
        paper = {"name": "odd", "problems": names, "calibrations": ["paper"],
                 "replicates": 2, "fresh": 2, "runs": {"dp_cd": {"grid": grid}},
                 "figures": {"curves": {"kind": "trajectories"}}}  # fmt: skip
        (conf / "paper/odd/paper.yaml").write_text(yaml.safe_dump(paper))
        for name in names:
            config = compose(["paper=odd", f"problem={name}", "solver=dp_cd"])
            before = (inputs.fetch, inputs.prepare, inputs.optimum)
            for stage in (*before, stages.tune, stages.evaluate):
                stage(config)
        products.figure(compose(["paper=odd"]))
        return pd.read_csv("figures/odd/curves.csv"), config.data

    return run


def check(curves, data, names):
    assert set(curves["panel"]) == set(names)
    assert np.isfinite(curves["mean"]).all()
    for name in names:
        prepared = load_prepared(name, data)
        expected = {"two_parts": N + 2, "arff_gaps": N - 2}.get(name, N)
        assert prepared.meta["n"] == expected
        assert prepared.meta["p"] == (5 if name == "gaps_and_colours" else 3)
        dense = (
            prepared.X if isinstance(prepared.X, np.ndarray) else prepared.X.toarray()
        )
        if expected == N and prepared.meta["p"] == 3:
            assert dense.tolist() == X.tolist()
            y = SIGNS if ODD[name][3] is LOGISTIC else Y
            assert prepared.y.tolist() == y.tolist()


def test_some_odd_files_to_a_figure(chain):
    names = ["bom_crlf_quotes", "zero_based_gz", "arff_gaps"]
    check(*chain(names), names)


@pytest.mark.slow
def test_all_odd_files_to_a_figure(chain):
    check(*chain(list(ODD)), list(ODD))
