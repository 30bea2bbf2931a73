"""``python -m dperm``: the ``dperm`` command."""

from dperm.cli import main

if __name__ == "__main__":
    main()
