"""Manifests as the world of queues: who has quota, who holds it, who waits, and which pods belong to whom."""

from shoal.store.queues.manifest_queues import ManifestQueues, queue_world

__all__ = ["ManifestQueues", "queue_world"]
