"""What a number comes from: privacy, problems, solvers, lanes, one experiment."""
