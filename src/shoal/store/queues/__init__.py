"""Manifests as the world of queues: who has quota, who holds it, who waits, and which pods belong to whom."""

from shoal.store.queues.world import QueueWorld, queue_world

__all__ = ["QueueWorld", "queue_world"]
