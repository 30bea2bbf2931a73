"""Style of figures and tables, and intervals; no results of a paper are computed."""
