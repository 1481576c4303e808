"""Nodes that stop reporting are marked, tainted, and their pods called not ready."""
