"""The two classes above all others, which only the system may bring."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.embedded.apiserver.bootstrap.seed import Seed, seed

_CLASSES = (
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
)


def priority_classes() -> Iterator[Seed]:
    for name, value, description in _CLASSES:
        yield seed(
            ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
            name,
            value=value,
            description=description,
            preemptionPolicy="PreemptLowerPriority",
        )
