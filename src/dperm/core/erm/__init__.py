"""Empirical risk minimisation: losses, penalties, sets, problems, certified optima."""
