"""What figures and tables look like, and intervals; nothing is computed of a paper."""
