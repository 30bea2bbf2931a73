"""The notebooks run with today's code, and print what they show."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path, monkeypatch, capsys):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(path.parent)
    names = {}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            lines = [line for line in cell["source"] if line[:1] != "%"]
            exec(compile("".join(lines), cell["id"], "exec"), names)
            texts = [
                out["text"]
                for out in cell["outputs"]
                if out.get("name") == "stdout"
            ]
            shown = "".join(line for text in texts for line in text)
            assert capsys.readouterr().out == shown, cell["id"]
