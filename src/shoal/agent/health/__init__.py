"""Watches the health of this node's GPUs and reports it to the cluster."""
