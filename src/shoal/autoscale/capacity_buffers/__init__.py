"""Keeps free capacity for pods that may come: CapacityBuffers of Cluster Autoscaler's API."""
