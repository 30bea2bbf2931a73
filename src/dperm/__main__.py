"""``python -m dperm``: the ``dperm`` command."""

import sys

if not sys.flags.safe_path:
    # The current folder comes last: its html.py is not the one that libraries mean.
    sys.path.append(sys.path.pop(0))

from dperm.cli import main

if __name__ == "__main__":
    main()
