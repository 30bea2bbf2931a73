"""The gallery's order and look, which Sphinx imports by name."""

from pathlib import Path

import matplotlib.pyplot as plt

import dperm

ORDER = (  # of a reader: what an epsilon is worth, use, additions
    "plot_published_epsilon.py",
    "plot_cost_of_epsilon.py",
    "plot_figure1.py",
    "plot_ship_fit.py",
    "plot_tune_privately.py",
    "plot_audit_function.py",
    "plot_ledger.py",
    "plot_accountants.py",
    "plot_add_data.py",
    "plot_add_method.py",
    "plot_add_paper.py",
)
STYLE = Path(dperm.__file__).with_name("plotting") / "dperm.mplstyle"


def place(script: str) -> int:
    """Where a script stands; one that is not listed is an error."""
    return ORDER.index(Path(script).name)


def styled(configuration: object, script: str) -> None:
    """Draw as the project's figures do, before every script."""
    plt.style.use(STYLE)
    plt.rcParams["savefig.dpi"] = 150
