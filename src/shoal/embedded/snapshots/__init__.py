"""Starts an embedded cluster with the objects of a snapshot of another cluster."""
