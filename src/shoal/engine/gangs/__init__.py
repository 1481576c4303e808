"""Pods that run together or not at all."""
