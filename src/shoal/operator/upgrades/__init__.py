"""Driver upgrades node by node: the states of nodes, the limits, one pass over all nodes, the order of nodes."""
