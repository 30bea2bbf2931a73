"""The notebooks run, and what is kept of them is what they print."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def builder():
    spec = importlib.util.spec_from_file_location("build", NOTEBOOKS / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(notebook) -> list[str]:
    """All text of the outputs, without digits: the last ones depend on the machine."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = [
        output["text"]
        if output.output_type == "stream"
        else output.data.get("text/plain", "")
        for output in outputs
        if output.get("name") != "stderr"
    ]
    return [re.sub(r"[-\d.e+ ]+", "#", text) for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_it_runs_and_prints_what_is_kept(name):
    path = NOTEBOOKS / f"{name}.ipynb"
    assert printed(builder().executed(path)) == printed(nbformat.read(path, 4))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_is_small_and_names_no_machine(name):
    text = (NOTEBOOKS / f"{name}.ipynb").read_text()
    assert len(text) < 200_000
    assert "/home/" not in text and "iopub" not in text
    assert "/tmp/" not in text  # nosec B108  # looked for, not written to
