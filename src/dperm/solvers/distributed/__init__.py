"""Features spread over several nodes: engines, nodes, messages and sketches."""
