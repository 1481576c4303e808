"""Placeholder pods: they keep places on nodes until the pods of an admitted Workload exist."""
