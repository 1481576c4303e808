"""Judges pods against the ResourceQuotas of their namespace once more: after a change of the quotas, or one pod against
quotas that were read alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shoal.api.decode import Document
from shoal.api.disruption import PriorityClass
from shoal.api.pod import Pod
from shoal.engine.from_api import Priorities
from shoal.policy.admission.pod_resources import Amounts, Obj
from shoal.policy.admission.quota.pods import PodEvaluator
from shoal.policy.admission.quota.tracked_quota import TrackedQuota
from shoal.store.held_pods import HeldPod
from shoal.store.inventory import Inventory
from shoal.store.manifest_admission import creation_of
from shoal.store.manifest_pods import ManifestPods
from shoal.store.operator_pods import OperatorPods

_PODS = PodEvaluator()


def refused_pods(documents: Sequence[Document]) -> Mapping[str, HeldPod]:
    """By key, the pods that the API server would not create, those of controllers included."""
    inventory = Inventory(documents)
    priorities = Priorities(placed.value for placed in inventory.of(PriorityClass))
    return ManifestPods(inventory, priorities, OperatorPods(inventory), []).refused


def usage_of_quotas(quotas: Sequence[Obj], pod: Pod) -> Iterator[tuple[TrackedQuota, Amounts]]:
    """What one pod uses of each quota."""
    obj = creation_of(pod)
    for quota in map(TrackedQuota, quotas):
        yield quota, quota.usage(_PODS, obj)
