"""Lists the kinds that a snapshot of a cluster contains: those that decisions read, in the versions that `api/` reads.

Guarantees: a kind that is not installed is left out; one that is served in an older version that we read is taken in
that version. Kinds with confidential content (Secrets, ConfigMaps) are not in the list; one ConfigMap is read, and
only Kueue's configuration is taken from it.

Rejected: all kinds that discovery names. Most have nothing to do with scheduling, and some are confidential.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.api.kinds import find_kind
from shoal.client import ecosystem_kinds as others
from shoal.client import kind as core
from shoal.client.kind import Kind
from shoal.client.port import ServedKind
from shoal.store.queues.job_parts import JOB_KINDS

LIMIT_RANGES = Kind("", "v1", "limitranges", "LimitRange")
RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", is_namespaced=False)

NEEDED = (core.NODES, core.PODS)
"""Kinds without which no decision is possible."""

_BEFORE_PODS = (others.CAPACITY_BUFFERS, others.PROVISIONING_REQUESTS)
"""Kinds that keep capacity for pods of a PodTemplate. Without them no PodTemplate is read."""

WANTED: tuple[Kind, ...] = (
    core.NAMESPACES,
    core.NODES,
    others.NODE_POOLS,
    others.NODE_CLAIMS,
    others.NODE_TOPOLOGIES,
    core.DEVICE_CLASSES,
    core.RESOURCE_SLICES,
    core.PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    core.STORAGE_CLASSES,
    core.VOLUMES,
    others.KUEUE_TOPOLOGIES,
    others.KAI_TOPOLOGIES,
    others.HYPER_NODES,
    others.RESOURCE_FLAVORS,
    others.ADMISSION_CHECKS,
    others.WORKLOAD_PRIORITY_CLASSES,
    others.COHORTS,
    others.CLUSTER_QUEUES,
    others.LOCAL_QUEUES,
    others.VOLCANO_QUEUES,
    others.KAI_QUEUES,
    others.KAI_SHARDS,
    LIMIT_RANGES,
    core.RESOURCE_QUOTAS,
    core.DISRUPTION_BUDGETS,
    core.VOLUME_CLAIMS,
    *_BEFORE_PODS,
    core.POD_TEMPLATES,
    core.RESOURCE_CLAIM_TEMPLATES,
    core.RESOURCE_CLAIMS,
    others.VOLCANO_POD_GROUPS,
    others.LIGHT_POD_GROUPS,
    others.KAI_POD_GROUPS,
    others.GROUP_WORKLOADS,
    others.GROUP_POD_GROUPS,
    core.DAEMON_SETS,
    core.DEPLOYMENTS,
    core.STATEFUL_SETS,
    core.REPLICA_SETS,
    *(row.kind for row in JOB_KINDS if row.kind != others.APP_WRAPPERS),
    others.LEADER_WORKER_SETS,
    others.WORKLOADS,
    core.PODS,
)
"""Kinds in the order of the snapshot: nodes and namespaces, rules, controllers of pods, pods."""


def present(served: Iterable[ServedKind]) -> Iterator[Kind]:
    """The kinds that this server lists, each in a supported version, in the order of this table."""
    there = {(one.kind.group, one.kind.plural): one for one in served}
    has_templates = any((kind.group, kind.plural) in there for kind in _BEFORE_PODS)
    for kind in WANTED:
        if kind == core.POD_TEMPLATES and not has_templates:
            continue
        found = there.get((kind.group, kind.plural))
        if found is not None and "list" in found.verbs:
            yield _in_version(kind, found)


def _in_version(kind: Kind, served: ServedKind) -> Kind:
    """The first version of the server that is supported; its preferred one where no version of the kind is known."""
    versions = [kind._replace(version=each) for each in served.versions]
    return next((each for each in versions if find_kind(each.api_version, each.name) is not None), served.kind)
