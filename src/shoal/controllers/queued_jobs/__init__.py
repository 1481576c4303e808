"""Queues jobs of every kind: each waits with a Workload until the admission loop admits it."""
