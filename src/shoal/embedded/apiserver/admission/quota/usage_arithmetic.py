"""The address and the new status of a quota that a write charges."""

from __future__ import annotations

import msgspec

from shoal.embedded.apiserver.resource import Home, Ref
from shoal.policy.admission.pod_resources import Amounts
from shoal.policy.admission.quota.tracked_quota import TrackedQuota

QUOTAS = Home("", "resourcequotas")


class QuotaCharge(msgspec.Struct, frozen=True):
    """A quota and what is used of it after a write."""

    ref: Ref
    used: dict[str, str]


class Book(TrackedQuota):
    """A quota of the storage."""

    __slots__ = ()

    @property
    def ref(self) -> Ref:
        return Ref(QUOTAS, self.namespace, self.name)

    def charge(self, used: Amounts) -> QuotaCharge:
        return QuotaCharge(self.ref, {name: str(used[name]) for name in sorted(used) if name in self.hard})
