"""Implements topology-aware scheduling: selects the topology domains for the pods of an admitted workload."""
