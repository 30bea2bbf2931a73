"""``python -m dperm``: the ``dperm`` command."""

import sys

if not sys.flags.safe_path:
    # Search the current folder last: a file like html.py there must not hide a library.
    sys.path.append(sys.path.pop(0))

from dperm.cli import main

if __name__ == "__main__":
    main()
