"""A harness that looks for what a job depends on and its key does not hold."""
