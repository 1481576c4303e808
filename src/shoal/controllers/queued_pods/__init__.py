"""Queues pods by scheduling gates: single pods, pod groups, and pods of StatefulSets and LeaderWorkerSets."""
