"""Which nodes are removed or replaced."""
