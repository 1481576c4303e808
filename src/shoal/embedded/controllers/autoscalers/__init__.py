"""The HorizontalPodAutoscaler controller: the replicas of a scale follow metrics."""
