"""A user's own module: all on which a number can depend is in its digest."""

import sys

import pytest

from dperm.storage import source_code

# A way to depend on something: the module, the file beside it that changes, and an old
# and a new text in it.
H = "def g():\n    return 1\n"
WAYS = {
    "import": ("import h\ndef f():\n    return h.g()\n", "h.py", H),
    "star": ("from h import *\ndef f():\n    return g()\n", "h.py", H),
    "lazy": ("def f():\n    import h\n    return h.g()\n", "h.py", H),
    "under if": ("if True:\n    import h\ndef f():\n    return h.g()\n", "h.py", H),
    "try": ("try:\n    import h\nexcept ImportError:\n    pass\ndef f():\n"
            "    return h.g()\n", "h.py", H),
    "importlib": ("import importlib\ndef f():\n"
                  "    return importlib.import_module('h').g()\n", "h.py", H),
    "importlib of a computed name": (
        "import importlib\ndef f():\n"
        "    return importlib.import_module('hh'[:1]).g()\n", "h.py", H),
    "__import__": ("def f():\n    return __import__('h').g()\n", "h.py", H),
    "json": ("import json, pathlib\ndef f():\n    return json.loads("
             "pathlib.Path(__file__).with_name('h.json').read_text())\n",
             "h.json", "[1]"),
    "npy": ("import numpy as np\ndef f():\n    return np.load('h.npy')\n",
            "h.npy", "1"),
    "f-string": ("def f(name='h'):\n    return open(f'{name}.csv').read()\n",
                 "h.csv", "1"),
    "subfolder": ("def f():\n    return open('below/h.csv').read()\n",
                  "below/h.csv", "1"),
}  # fmt: skip
INSIDE = {
    "registry": "KNOWN = {}\ndef register(g):\n    KNOWN[g.__name__] = g\n"
    "    return g\n"
    "@register\ndef g():\n    return 1\ndef f():\n    return KNOWN['g']()\n",
    "under if": "if True:\n    def g():\n        return 1\ndef f():\n    return g()\n",
    "globals": "def g():\n    return 1\ndef f():\n    return globals()['g']()\n",
    "getattr": "import sys\ndef g():\n    return 1\ndef f():\n"
    "    return getattr(sys.modules[__name__], 'g')()\n",
    "subclasses": "class A: pass\nclass B(A):\n    size = 1\ndef f():\n"
    "    return A.__subclasses__()[0].size\n",
    "state": "STATE = []\ndef fill():\n    STATE.append(1)\nfill()\ndef f():\n"
    "    return STATE\n",
    "docstring": "def g():\n    'say 1'\ndef f():\n    return g.__doc__\n",
    "annotation": "def g(x: 'int 1'): ...\ndef f():\n    return g.__annotations__\n",
    "default": "def f(x=1):\n    return x\n",
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes a file of a user's own, and forgets what was read before."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        source_code.forget()
        sys.path_importer_cache.clear()

    yield write
    source_code.forget()


@pytest.mark.parametrize("way", WAYS)
def test_what_lies_beside_a_module_counts(own, way):
    text, file, content = WAYS[way]
    own("m.py", text)
    own(file, content)
    before = source_code.digest("m:f")
    own(file, content.replace("1", "2"))
    assert source_code.digest("m:f") != before


@pytest.mark.parametrize("way", INSIDE)
def test_all_of_a_module_counts(own, way):
    own("m.py", INSIDE[way])
    before = source_code.digest("m:f")
    own("m.py", INSIDE[way].replace("1", "2"))
    assert source_code.digest("m:f") != before


def test_comments_and_what_lies_apart_do_not_count(own):
    own("m.py", "def f():\n    'Say.'\n    return 1\n")
    own("apart.py", "A = 1\n")
    before = source_code.digest("m:f")
    own("m.py", "def f():  # a comment\n    'Another.'\n    return 1\n")
    own("apart.py", "A = 2\n")
    assert source_code.digest("m:f") == before


def test_more_files_than_can_be_followed_are_refused(own, monkeypatch):
    monkeypatch.setattr(source_code, "MAX_FILES", 2)
    own("m.py", "def f(name):\n    return open(name).read()\n")
    for number in range(3):
        own(f"{number}.csv", "1")
    with pytest.raises(source_code.UnfollowedError, match="more than 2 files"):
        source_code.digest("m:f")


def test_a_fit_by_its_short_name_is_code(own):
    own("m.py", "import dperm\ndef f(X, y):\n    return dperm.fit(X, y)\n")
    assert "dperm.estimators.estimators" in source_code.reached("m:f")


@pytest.mark.parametrize(
    "library", ["pandas", "scikit-learn", "pyarrow", "python"]
)
def test_the_versions_of_libraries_count(library):
    assert source_code.versions()[library]
