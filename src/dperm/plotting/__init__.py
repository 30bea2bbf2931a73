"""Drawing, styles, and tables as text."""
