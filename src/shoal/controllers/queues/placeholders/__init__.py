"""Placeholder pods, which keep places on nodes until the pods of an admitted Workload exist."""
