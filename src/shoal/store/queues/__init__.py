"""Reads queues from manifests: quota, usage, pending workloads, and the pods of each workload."""

from shoal.store.queues.manifest_queues import ManifestQueues, queue_world

__all__ = ["ManifestQueues", "queue_world"]
