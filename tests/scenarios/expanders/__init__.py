"""Runs the cases about Cluster Autoscaler's choices."""
