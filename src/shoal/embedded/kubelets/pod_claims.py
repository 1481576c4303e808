"""Prepares the resource claims of pods on a simulated node before the pods start, as a kubelet does.

Claims without a device of this node's driver are of other drivers, which simulated nodes do not have, and hold nothing
up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.api.claims import ResourceClaim
from shoal.api.wire import dec_hook
from shoal.client.informer import Informer
from shoal.devices.claimable_devices import CLAIM_DRIVER
from shoal.devices.pod_claims import claims_of_pod
from shoal.embedded.gpus.claimed_devices import ClaimedDevices
from shoal.embedded.gpus.node_gpus import ContainerDevices
from shoal.units.errors import UserError

Obj = dict[str, Any]


class PodClaims:
    """`claims`: the ResourceClaims of the cluster."""

    def __init__(self, node: str, devices: ClaimedDevices, claims: Informer) -> None:
        self._node, self._devices, self._claims = node, devices, claims

    def prepare(self, pod: Obj) -> tuple[ContainerDevices, ...] | str:
        """The devices of the containers, or why there are none yet."""
        namespace = pod["metadata"]["namespace"]
        found: dict[str, ResourceClaim] = {}
        for own, name in claims_of_pod(pod).items():
            item = self._claims.get(namespace, name) if name else None
            if item is None:
                return f"ResourceClaim {namespace}/{name} does not exist" if name else f"claim {own} is not created yet"
            try:
                claim = msgspec.json.decode(item.data, type=ResourceClaim, dec_hook=dec_hook)
            except msgspec.DecodeError as error:
                return f"ResourceClaim {namespace}/{name} cannot be read: {error}"
            refusal = _refusal(claim, pod)
            if refusal:
                return refusal
            if self._is_here(claim):
                found[name] = claim
        if not found:
            return ()
        try:
            return self._devices.prepare(pod, found)
        except UserError as error:
            return str(error)

    def release(self, uid: str) -> None:
        """The pod has ended."""
        self._devices.release(uid)

    def _is_here(self, claim: ResourceClaim) -> bool:
        allocation = claim.status.allocation
        results = allocation.devices.results if allocation is not None else ()
        return any((one.driver, one.pool) == (CLAIM_DRIVER, self._node) for one in results)


def _refusal(claim: ResourceClaim, pod: Mapping[str, Any]) -> str:
    name, metadata = f"ResourceClaim {claim.metadata.namespace}/{claim.metadata.name}", pod["metadata"]
    if claim.status.allocation is None:
        return f"{name} is not allocated"
    if all(one.uid != metadata["uid"] for one in claim.status.reserved_for):
        return f"{name} is not reserved for pod {metadata['namespace']}/{metadata['name']}"
    return ""
