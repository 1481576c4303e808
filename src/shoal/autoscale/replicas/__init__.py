"""Decides the replica count of a HorizontalPodAutoscaler as Kubernetes 1.36 does, from readings of its metrics."""
