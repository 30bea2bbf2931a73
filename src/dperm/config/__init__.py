"""What an experiment is: YAML, its schema and checks, grids, views of it."""

IN_KEYS = "names"
