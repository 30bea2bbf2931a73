"""Claims and their verdicts, selection bias, and the page that shows them."""

from dperm.extras import require

require("report", __name__)
