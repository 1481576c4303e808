"""Schedules GPUs for Kubernetes; importing the package imports nothing else, so that every command starts fast."""
