"""Counts how many pods that do not exist yet the ResourceQuotas of their namespaces would allow.

The pods of CapacityBuffers and ProvisioningRequests exist in plans only, so no API server counts them. They are counted
here one after the other, beside what the quotas say is used; where a quota does not say it, its pods are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.pod import Pod
from shoal.policy.admission.pod_resources import Amounts, Obj
from shoal.policy.admission.quota.pods import PodEvaluator
from shoal.policy.admission.quota.tracked_quota import TrackedQuota, changed
from shoal.store.manifest_admission import creation_of

_PODS = PodEvaluator()


class QuotaRoom:
    def __init__(self, quotas: Iterable[Obj] = (), present: Callable[[], Iterable[Pod]] = tuple) -> None:
        """`present`: the pods of the cluster."""
        self._quotas: dict[str, list[TrackedQuota]] = {}
        for quota in map(TrackedQuota, quotas):
            self._quotas.setdefault(quota.namespace, []).append(quota)
        for found in self._quotas.values():
            found.sort(key=lambda each: each.name)
        if any(quota.said is None for each in self._quotas.values() for quota in each):
            self._count(present())

    def _count(self, present: Iterable[Pod]) -> None:
        uncounted = [quota for each in self._quotas.values() for quota in each if quota.said is None]
        for quota in uncounted:
            quota.said = {}
        for pod in present:
            for quota in uncounted:
                if quota.namespace == _namespace(pod) and not pod.is_finished():
                    quota.said = changed(quota.said or {}, quota.usage(_PODS, creation_of(pod)))

    def take(self, pods: Sequence[Pod]) -> tuple[int, str]:
        """How many of these fit, the first ones first, and why the next one does not. What fits is used from now on."""
        known: dict[int, list[tuple[TrackedQuota, Amounts]]] = {}
        for number, pod in enumerate(pods):
            quotas = self._quotas.get(_namespace(pod), ())
            if not quotas:
                continue
            # Pods of one template share their specification.
            usage = known.get(id(pod.spec))
            if usage is None:
                obj = creation_of(pod)
                for quota in quotas:
                    required = _PODS.matching(quota.hard) if quota.counts(_PODS, obj) else set()
                    if silent := _PODS.missing(required, obj):
                        return number, f"failed quota: {quota.name}: {silent}"
                usage = known[id(pod.spec)] = [(quota, quota.usage(_PODS, obj)) for quota in quotas]
            for quota, amounts in usage:
                if fault := quota.exceeded(amounts, quota.said or {}):
                    return number, fault
            for quota, amounts in usage:
                quota.said = changed(quota.said or {}, amounts)
        return len(pods), ""

    def refusal(self, pods: Sequence[Pod]) -> str:
        """Why not all of these fit; empty if they do, and they are used from now on. Otherwise nothing is used."""
        before = [(quota, quota.said) for each in self._quotas.values() for quota in each]
        count, fault = self.take(pods)
        if count < len(pods):
            for quota, said in before:
                quota.said = said
        return fault


def _namespace(pod: Pod) -> str:
    return pod.metadata.namespace or DEFAULT_NAMESPACE
