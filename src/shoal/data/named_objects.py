"""Names of the objects that Shoal writes in the whole cluster, for the roles that may change these only.

RBAC has no patterns, so each name is listed. The policies of rules follow from the catalogue: `python -m
tools.rules_page` writes their names to `rule_policies.py`, because this layer does not import the catalogue.
"""

from __future__ import annotations

from shoal.data.rule_policies import RULE_POLICIES

_HOLDING = (
    *("hand-down-deployments", "hand-down-leaderworkersets", "hand-down-replicasets", "hand-down-statefulsets"),
    *("hold-jobs", "hold-pods", "hold-ray-services", "hold-training-jobs"),
)
_ADDED = ("toleration", "node-affinity", "shm", "nccl", "priority-class", "queue")
_KEEPING = (f"shoal-keep-queue-{name}" for name in ("jobs", "ray-services", "training-jobs"))
_MODES = ("warn", "enforce")


def with_bindings(policies: tuple[str, ...]) -> tuple[str, ...]:
    """The policies of rules, then their bindings: one for each mode and each way in which a namespace gets it."""
    ways = ("", "-by-rule", "-by-mode")
    return (*policies, *(f"{name}-{mode}{way}" for name in policies for mode in _MODES for way in ways))


MUTATING = ",".join(
    (
        *(f"shoal-{name}{end}" for name in _HOLDING for end in ("", "-default")),
        "shoal-rendezvous",
        *(f"shoal-add-{name}" for name in _ADDED),
    )
)
VALIDATING = ",".join((*_KEEPING, "shoal-guard-devices", "shoal-limit-gpu-parts", *with_bindings(RULE_POLICIES)))

DEFINITIONS = ",".join(
    f"{plural}.kueue.x-k8s.io"
    for plural in (
        *("admissionchecks", "clusterqueues", "cohorts", "localqueues", "multikueueclusters", "multikueueconfigs"),
        *("provisioningrequestconfigs", "resourceflavors", "topologies", "workloadpriorityclasses", "workloads"),
    )
)
"""Of the kinds that Shoal's webhook converts, where Shoal brought them."""

METRICS_APIS = "v1beta1.custom.metrics.k8s.io,v1beta1.external.metrics.k8s.io,v1beta2.custom.metrics.k8s.io"
