"""The notebooks run with today's code, and print what they show."""

from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path, monkeypatch, capsys):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(path.parent)
    names = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            lines = [line for line in cell.source.splitlines() if line[:1] != "%"]
            exec(compile("\n".join(lines), cell.id, "exec"), names)
            outputs = [one for one in cell.outputs if one.output_type == "stream"]
            shown = "".join(one.text for one in outputs if one.name == "stdout")
            assert capsys.readouterr().out == shown, cell.id
