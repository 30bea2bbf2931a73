"""Everything that computes numbers: privacy, problems, solvers, experiments."""
