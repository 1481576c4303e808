"""Lists the kinds that are suspended or gated at creation, and the field of each.

Both implementations use this table: the expressions of admission policies (`policies.py`), and the webhook that does
the same where policies are not served (`holding.py`). A new kind is a new line.

Guarantees: a child of another job in these tables is never held (its parent is); objects that request no queue are not
changed.
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
"""An annotation of pod templates: the kind that suspended the owner of the pods."""
DEFAULT_QUEUE = "default"


class Switch(msgspec.Struct, frozen=True):
    """Kinds with a `suspend` field at this path."""

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
    """A kind that keeps pods running: its pods are held one by one, so its queue is copied to their templates."""

    kind: Kind
    templates: tuple[tuple[str, ...], ...]
    """The paths of the templates. The first always exists, others may."""


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
    """Which objects are held."""

    namespaces: dict[str, object] | None = None
    """A label selector of namespaces; None: all except system namespaces."""
    everything: bool = False
    """Whether jobs that request no queue are held as well."""
    frameworks: Frameworks = ALL

    def holds(self, kind: Kind) -> bool:
        return self.frameworks.has(kind.group, kind.name)

    def selector(self) -> dict[str, object]:
        if self.namespaces is not None:
            return self.namespaces
        but = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(SYSTEM_NAMESPACES)}
        return {"matchExpressions": [but]}


Rules = Callable[[], HoldingRules | None]
"""Returns the current rules; None while Kueue admits jobs in this cluster."""


def holding_rules_of(configuration: Configuration) -> HoldingRules:
    chosen = configuration.managed_jobs_namespace_selector
    return HoldingRules(
        None if chosen is None else msgspec.to_builtins(chosen),
        configuration.manage_jobs_without_queue_name,
        frameworks_of(configuration),
    )
