"""Everything that computes numbers: privacy, problems, solvers, lanes, experiments."""
