"""Creates the claim of a pod whose extended resources come from device classes, which is a task of the scheduler.

Its name follows from the pod, so that after a crash the next process finds it and creates no second one. The pod's
status maps containers to requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import structs

from shoal.api.container import Container
from shoal.api.pod import Pod
from shoal.client.context import Context
from shoal.client.item import Key, Obj
from shoal.client.kind import PODS, RESOURCE_CLAIMS, Kind
from shoal.client.owner_reference import controlled_by
from shoal.client.port import Patch
from shoal.client.refusals import AlreadyExistsError
from shoal.controllers.bind_preparation.users import User
from shoal.engine.dra.requests import Picks
from shoal.units.errors import ConflictError

_MARK = "resource.kubernetes.io/extended-resource-claim"
_LONGEST_BASE = 200
ClassOf = Callable[[str], str]


class _Part(NamedTuple):
    """The request of one container for one resource."""

    request: str
    container: str
    resource: str
    amount: int


class ExtendedClaims:
    def __init__(self, context: Context, class_of: ClassOf, kind: Kind = RESOURCE_CLAIMS) -> None:
        self._api = context.api
        self._class_of = class_of
        self._kind = kind

    async def made(self, pod: Pod, user: User) -> Key:
        """The pod's claim, which is created if it is missing."""
        name = f"{user.name[:_LONGEST_BASE]}-extended-resources-{user.uid[:8]}"
        requests = [
            {
                "name": part.request,
                "exactly": {
                    "deviceClassName": self._class_of(part.resource),
                    "allocationMode": "ExactCount",
                    "count": part.amount,
                },
            }
            for part in self._parts(pod)
        ]
        claim: Obj = {
            "metadata": {
                "name": name,
                "namespace": user.namespace,
                "annotations": {_MARK: "true"},
                "ownerReferences": [controlled_by(PODS, user.name, user.uid)],
            },
            "spec": {"devices": {"requests": requests}},
        }
        try:
            await self._api.create(self._kind, claim)
        except AlreadyExistsError:
            there = (await self._api.get(self._kind, user.namespace, name)).obj()
            owners = there["metadata"].get("ownerReferences") or ()
            if not any(one["uid"] == user.uid for one in owners):
                raise ConflictError(f'resourceclaim "{user.namespace}/{name}" is not the pod\'s') from None
        return user.namespace, name

    async def tell(self, pod: Pod, user: User, claim: Key) -> None:
        """Write to the pod's status which request serves which container, for the kubelet."""
        mappings = [
            {"containerName": part.container, "resourceName": part.resource, "requestName": part.request}
            for part in self._parts(pod)
        ]
        status = {"extendedResourceClaimStatus": {"requestMappings": mappings, "resourceClaimName": claim[1]}}
        body = {"metadata": {"uid": user.uid}, "status": status}
        await self._api.patch(PODS, user.namespace, user.name, Patch("merge", body), "status")

    def renamed(self, pod: Pod, picks: Picks) -> Picks:
        """The devices by the names of the claim's requests; the decision has them by resource."""
        left: dict[str, list[str]] = {}
        for part in self._parts(pod):
            left.setdefault(part.resource, []).extend([part.request] * part.amount)
        return tuple(structs.replace(pick, request=left[pick.request].pop(0)) for pick in picks if left[pick.request])

    def _parts(self, pod: Pod) -> Iterator[_Part]:
        """The requests of containers that keep their devices; init containers that end before them use the same devices
        first.
        """
        spec = pod.spec
        kept = [
            (number, container)
            for number, container in enumerate((*spec.init_containers, *spec.containers))
            if number >= len(spec.init_containers) or container.is_sidecar()
        ]
        for number, container in kept:
            for place, (resource, count) in enumerate(self._served(container)):
                yield _Part(f"container-{number}-request-{place}", container.name, resource, count)

    def _served(self, container: Container) -> Iterator[tuple[str, int]]:
        resources = container.resources
        for name, amount in sorted({**resources.limits, **resources.requests}.items()):
            if amount.value() and self._class_of(name):
                yield name, amount.value()
