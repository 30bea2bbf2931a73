"""Sphinx: the documentation site, built by ``make docs``."""

import re
import shutil
import sys
from pathlib import Path

from dperm import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # gallery_order
EXPLORER = HERE.parent / "results/report/explorer.html"

project = "dperm"
author = "The dperm authors"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "auto_gallery/*.ipynb",
    "article",
    "examples",
    "gallery/*.txt",
]
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": "plot_",
    "abort_on_example_error": True,
    "show_memory": False,
    "capture_repr": ("_repr_html_",),  # not addresses of objects
    "write_computation_times": False,  # they differ from run to run
    "min_reported_time": 3600,
    "reset_modules": ("matplotlib", "seaborn", "gallery_order.styled"),
    "reset_modules_order": "both",
    "within_subsection_order": "gallery_order.place",
}
suppress_warnings = ["ref.python"]  # n and p in prose are no cross-references
html_theme = "furo"
html_title = "dperm"
html_static_path = ["_static"]
html_js_files = ["accessible.js"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_param = False
napoleon_use_rtype = False

myst_enable_extensions = ["dollarmath", "substitution"]
myst_substitutions = {
    "explorer": '<a href="explorer.html">every curve, cell and claim</a>'
    if EXPLORER.is_file()
    else "`dperm report` makes a page of every curve, cell and claim"
}
myst_heading_anchors = 3
nb_execution_mode = "off"

LITERAL_OR_BAR = re.compile(r"``.*?``|:math:`.*?`|\|")


def plain_bars(app, what, name, obj, options, lines):
    """Docstrings write |x| for an absolute value; reStructuredText would substitute."""
    inside = None  # indentation of the formula that the line may belong to
    for k, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if inside is not None and line.strip() and indent <= inside:
            inside = None
        if line.lstrip().startswith(".. math::"):
            inside = indent
        if inside is None:
            lines[k] = LITERAL_OR_BAR.sub(_escaped, line)


def _escaped(found):
    return r"\|" if found[0] == "|" else found[0]


def skipped(app, what, name, obj, skip, options):
    """Methods that scikit-learn makes; they refer to its own pages."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def explored(app, error):
    """Put the results explorer beside the pages, if `dperm report` has made it."""
    if EXPLORER.is_file() and error is None:
        shutil.copy(EXPLORER, app.outdir)


def setup(app):
    """Connect the hooks, the first behind napoleon's."""
    app.connect("build-finished", explored)
    app.connect("autodoc-process-docstring", plain_bars, priority=900)
    app.connect("autodoc-skip-member", skipped)
