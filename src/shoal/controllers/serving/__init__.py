"""Scales model servers by their own metrics: Deployments, StatefulSets and LeaderWorkerSets with its annotations."""
