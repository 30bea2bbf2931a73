"""Features on several nodes: engines, nodes, messages and sketches."""
