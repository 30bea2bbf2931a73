"""Judge the claims of all papers: ``python -m dperm.claims scale=full``."""

from dperm.report.claims import claims
from dperm.stage import main

if __name__ == "__main__":
    main(claims)
