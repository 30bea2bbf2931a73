"""The jobs of a run, what Snakemake is told of them, and verification."""

IN_KEYS = "names"
