"""Lists the kinds that are suspended or gated at creation, and the field of each.

One table serves both ways of holding: the expressions of admission policies (`policies.py`) and the webhook that does
the same where policies are not served (`holding.py`). A kind is a line here.

Guarantees: a child of another job in these tables is never held (its parent is); who asks for no queue is left alone.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from shoal.api.kueue import Configuration
from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS
from shoal.client.kind import DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS, Kind
from shoal.controllers.queued_work.frameworks import ALL, Frameworks, frameworks_of
from shoal.store.queues.job_parts import JOB_KINDS, RUN_POLICY, SUSPEND, Steps

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
MANAGED = "kueue.x-k8s.io/managed"
"""A label of held pods (`"true"`), and a finalizer."""
GATE = "kueue.x-k8s.io/admission"
PARENT = "kueue.x-k8s.io/pod-suspending-parent"
"""An annotation of pod templates: who held the pods' owner back."""
DEFAULT_QUEUE = "default"


class Switch(msgspec.Struct, frozen=True):
    """Kinds that have a word `suspend` at this path."""

    name: str
    path: tuple[str, ...]
    kinds: tuple[Kind, ...]


_POLICY_NAMES: dict[Steps, str] = {
    SUSPEND: "jobs",
    RUN_POLICY: "training-jobs",
    ("spec", "rayClusterConfig", "suspend"): "ray-services",
}
"""The names of the admission policies, by the path of the field."""
SWITCHES = tuple(
    Switch(name, tuple(str(step) for step in path), tuple(row.kind for row in JOB_KINDS if row.shape.suspend == path))
    for path, name in _POLICY_NAMES.items()
)


class Keeper(msgspec.Struct, frozen=True):
    """A kind that keeps pods running: its pods are held one by one, so its queue is handed down to their templates."""

    kind: Kind
    templates: tuple[tuple[str, ...], ...]
    """The first is always there, others may be."""


KEEPERS = (
    Keeper(DEPLOYMENTS, (("spec", "template"),)),
    Keeper(REPLICA_SETS, (("spec", "template"),)),
    Keeper(STATEFUL_SETS, (("spec", "template"),)),
    Keeper(
        LEADER_WORKER_SETS,
        (("spec", "leaderWorkerTemplate", "workerTemplate"), ("spec", "leaderWorkerTemplate", "leaderTemplate")),
    ),
)

HOLDERS: tuple[tuple[str, str], ...] = tuple(
    sorted(
        {(kind.group, kind.name) for switch in SWITCHES for kind in switch.kinds}
        | {(keeper.kind.group, keeper.kind.name) for keeper in KEEPERS if keeper.kind != REPLICA_SETS}
    )
)
"""Group and kind of the owners whose children are not held."""

SYSTEM_NAMESPACES = ("kube-system", "kueue-system", "shoal-system")

HELD_KINDS = (*(kind for switch in SWITCHES for kind in switch.kinds), *(keeper.kind for keeper in KEEPERS), PODS)


class HoldingRules(msgspec.Struct, frozen=True):
    """Whose objects are held."""

    namespaces: dict[str, object] | None = None
    """A label selector; None: all but the system's."""
    everything: bool = False
    """Jobs that ask for no queue too."""
    frameworks: Frameworks = ALL

    def holds(self, kind: Kind) -> bool:
        return self.frameworks.has(kind.group, kind.name)

    def selector(self) -> dict[str, object]:
        if self.namespaces is not None:
            return self.namespaces
        but = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(SYSTEM_NAMESPACES)}
        return {"matchExpressions": [but]}


Rules = Callable[[], HoldingRules | None]
"""The present rules; None while Kueue admits jobs in this cluster."""


def holding_rules_of(configuration: Configuration) -> HoldingRules:
    chosen = configuration.managed_jobs_namespace_selector
    return HoldingRules(
        None if chosen is None else msgspec.to_builtins(chosen),
        configuration.manage_jobs_without_queue_name,
        frameworks_of(configuration),
    )
