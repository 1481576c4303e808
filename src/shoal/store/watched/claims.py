"""Indexes claims by name, by the pod that they were created for, and by their devices."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.claims import ResourceClaim
from shoal.store.dra.claim_refs import made_for


class KnownClaims:
    def __init__(self) -> None:
        self.by_key: dict[str, ResourceClaim] = {}
        self.made: dict[tuple[str, str], str] = {}
        """(pod, the pod's name for it) -> claim; of several the first by name."""
        self._all_made: dict[tuple[str, str], set[str]] = {}
        self._holders: dict[str, set[str]] = {}

    def put(self, key: str, claim: ResourceClaim | None) -> list[str]:
        """Set or remove the claim; returns the pods that it was created for, before and now."""
        pods = []
        known = self.by_key.pop(key, None)
        if known is not None:
            if (pod := made_for(known)) is not None:
                pods.append(pod[0])
                self._make(pod, key, is_there=False)
            for device in _held(known):
                self._let_go(device, key)
        if claim is not None:
            self.by_key[key] = claim
            if (pod := made_for(claim)) is not None:
                pods.append(pod[0])
                self._make(pod, key, is_there=True)
            for device in _held(claim):
                self._holders.setdefault(device, set()).add(key)
        return pods

    def holders(self, device: str) -> frozenset[str]:
        """Claims that have the device allocated, without those with admin access."""
        return frozenset(self._holders.get(device, ()))

    def _make(self, pod: tuple[str, str], key: str, *, is_there: bool) -> None:
        keys = self._all_made.setdefault(pod, set())
        if is_there:
            keys.add(key)
        else:
            keys.discard(key)
        if keys:
            self.made[pod] = min(keys)
        else:
            del self._all_made[pod]
            self.made.pop(pod, None)

    def _let_go(self, device: str, key: str) -> None:
        holders = self._holders.get(device)
        if holders is not None:
            holders.discard(key)
            if not holders:
                del self._holders[device]


def _held(claim: ResourceClaim) -> Iterator[str]:
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            yield "/".join(result.key)
