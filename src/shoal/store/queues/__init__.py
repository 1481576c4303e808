"""Reads queues from manifests: quota, usage, pending workloads, and the pods of each workload."""

from shoal.store.queues.manifest_queues import ManifestQueues, read_queue_manifests

__all__ = ["ManifestQueues", "read_queue_manifests"]
