"""The kinds of the core group beside pods, nodes and workloads."""
