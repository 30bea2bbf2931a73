"""Pack the data of all papers into one archive that ``DPERM_MIRROR`` can name.

``python -m dperm.bundle`` writes ``data/bundle.zip``; what was not fetched yet is
fetched first. With ``scale=smoke`` it holds the data of the small scales only.
"""

from dperm.experiments.bundling import bundle
from dperm.stage import main

if __name__ == "__main__":
    main(bundle)
