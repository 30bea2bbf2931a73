"""Run the notebooks and keep what they print: ``make notebooks``.

Nothing that changes from run to run is kept: no times, no version of Python, and cells
are numbered.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def executed(path: Path) -> nbformat.NotebookNode:
    """Run a notebook from its first cell, in this folder.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(HERE)}},
    )
    client.execute()
    return tidied(notebook)


def tidied(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Number the cells and drop what depends on the machine."""
    notebook.metadata = {
        "kernelspec": {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        },
        "language_info": {"name": "python"},
    }
    for k, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{k}", {}
    return notebook


def main() -> None:
    """Run the notebooks that are named, or all."""
    named = [Path(name) for name in sys.argv[1:]]
    for path in named or sorted(HERE.glob("*.ipynb")):
        nbformat.write(executed(path), path)
        print(path.name)


if __name__ == "__main__":
    main()
