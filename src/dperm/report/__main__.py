"""Write the report: ``python -m dperm.report``.

``python -m dperm.report readme`` puts the scorecard and three figures into README.md.
"""

import sys

from dperm.report.page import report
from dperm.report.readme import readme
from dperm.stage import main

if __name__ == "__main__":
    if "readme" in sys.argv[1:]:
        sys.argv.remove("readme")
        main(readme)
    else:
        main(report)
