"""Dynamic resource allocation on a node: publishes its devices, and prepares those of claims for containers."""
