"""Sphinx: the documentation site, built by ``make docs``."""

import re

from dperm import __version__

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
    "reset_modules_order": "both",
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

myst_enable_extensions = ["dollarmath"]
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


def setup(app):
    """Connect the hooks, the first behind napoleon's."""
    app.connect("autodoc-process-docstring", plain_bars, priority=900)
    app.connect("autodoc-skip-member", skipped)
