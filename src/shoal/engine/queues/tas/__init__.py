"""Topology-aware placement: which domains of a tree the pods of an admitted workload go to."""
