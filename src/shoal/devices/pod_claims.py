"""Reads which resource claims a pod has, and which requests of them each container uses.

A claim of the pod that was made for extended resources, such as `nvidia.com/gpu`, is named in the pod's status only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

Obj = Mapping[str, Any]
CLAIM_PREFIX = "claim:"
"""Before the name of a claim, where containers' statuses name their resources."""


class ContainerClaim(msgspec.Struct, frozen=True):
    container: str
    claim: str
    """The name of the ResourceClaim."""
    name: str
    """The pod's name for the claim, or the extended resource that it serves."""
    request: str = ""
    """Empty: all requests of the claim."""

    def uses(self, requests: tuple[str, ...]) -> bool:
        return not self.request or self.request in requests

    @property
    def resource(self) -> str:
        """As containers' statuses name it."""
        return f"{CLAIM_PREFIX}{self.name}" + (f"/{self.request}" if self.request else "")


def claims_of_pod(pod: Obj) -> dict[str, str]:
    """The names of the ResourceClaims by the pod's names for them; empty for one that does not exist yet. Without a
    need for a claim there is no ResourceClaim, and it is left out.
    """
    status = pod.get("status") or {}
    made = {one["name"]: one.get("resourceClaimName") for one in status.get("resourceClaimStatuses") or ()}
    found: dict[str, str] = {}
    for one in (pod.get("spec") or {}).get("resourceClaims") or ():
        name = one.get("resourceClaimName") or made.get(one["name"], "")
        if name is not None:
            found[one["name"]] = name
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName", "")
    return {**found, "": extended} if extended else found


def container_claims(pod: Obj) -> Iterator[ContainerClaim]:
    claims = claims_of_pod(pod)
    spec = pod.get("spec") or {}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for use in (container.get("resources") or {}).get("claims") or ():
            if claims.get(use["name"]):
                yield ContainerClaim(container["name"], claims[use["name"]], use["name"], use.get("request", ""))
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    for mapping in extended.get("requestMappings") or ():
        yield ContainerClaim(
            mapping["containerName"], claims.get("", ""), mapping["resourceName"], mapping["requestName"]
        )
