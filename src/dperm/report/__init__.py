"""Claims and their verdicts, selection bias, and the page that shows them."""
