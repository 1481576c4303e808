"""Small loads on queues: a few queues of a few cores, and work that is a line each."""

from __future__ import annotations

from shoal.sim.queue_load import LoadLevel, LoadTopology, QueueLoad, QueueQuota, Work

RACK, HOST = "example.com/rack", "kubernetes.io/hostname"


def work(
    name: str, count: int = 1, *, cores: float = 1, priority: int = 0, every_ms: int = 100, runtime_ms: int = 200
) -> Work:
    return Work(name, count, every_ms, runtime_ms, priority, round(1000 * cores))


def load(*works: Work, cohorts: int = 1, queues: int = 1, cores: int = 4, borrow: int | None = None) -> QueueLoad:
    """Queues that reclaim what is theirs and let the more important go first."""
    borrowing = None if borrow is None else 1000 * borrow
    quota = QueueQuota(1000 * cores, borrowing, reclaim="Any", within="LowerPriority")
    return QueueLoad("small", cohorts, queues, quota, works)


def racks(count: int, nodes: int, cores: int) -> LoadTopology:
    """Equal racks of equal nodes."""
    return LoadTopology(
        "racks", "example.com/group", (LoadLevel(RACK, count), LoadLevel(HOST, nodes)), 1000 * cores, 64
    )
