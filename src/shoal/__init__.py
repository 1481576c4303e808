"""Shoal schedules GPUs for Kubernetes; importing the package does nothing, so that every door opens fast."""
