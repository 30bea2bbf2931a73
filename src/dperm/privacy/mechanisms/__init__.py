"""Mechanisms beyond the Gaussian and the Laplace, each with its price."""
