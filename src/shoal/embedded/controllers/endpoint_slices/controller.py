"""Reconciles EndpointSlices and Endpoints with Services and their pods: two controllers, as in Kubernetes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from shoal.client.bound_pods import pods_by_node
from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from shoal.client.loop import Loop
from shoal.client.owned_pods.ownership import head
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.endpoint_slices import endpoints
from shoal.embedded.controllers.endpoint_slices.services import Services, keys_of
from shoal.embedded.controllers.endpoint_slices.slices import (
    CONTROLLER,
    MANAGED_BY,
    SERVICE_NAME,
    desired_endpoints,
    writes,
)

_ZONE = "topology.kubernetes.io/zone"


def endpoint_slice_controller(context: Context) -> Controller:
    """Reconciles EndpointSlices of Services with a selector; the garbage collector deletes orphaned slices."""
    of = context.informers.of
    services = Services(of(SERVICES), of(PODS))
    slices = of(ENDPOINT_SLICES).index("service", _service_of)
    by_node = pods_by_node(context.informers)
    zones: dict[str, str] = {}

    async def reconcile(key: Key) -> None:
        service = services.get(key)
        if service is None or service.metadata.deletion_timestamp is not None:
            return
        desired = desired_endpoints(service, services.members(service), zones)
        existing = [item.obj() for item in sorted(slices["/".join(key)], key=lambda item: item.name)]
        own = [one for one in existing if _is_owned(one, service.metadata.uid)]
        result = writes(service, desired, own)
        for obj in result.create:
            await context.api.create(ENDPOINT_SLICES, obj)
        for obj in result.update:
            await context.api.update(ENDPOINT_SLICES, obj)
        for obj in result.delete:
            meta = obj["metadata"]
            await context.api.delete(ENDPOINT_SLICES, key[0], meta["name"], Deletion(uid=meta["uid"]))

    def node_changed(before: Item | None, after: Item | None) -> None:
        if after is None:
            zones.pop(before.name if before is not None else "", None)
            return
        zone = head(after).labels.get(_ZONE, "")
        if zone != zones.get(after.name, ""):
            zones[after.name] = zone
            for key in keys_of(services, by_node[after.name]):
                loop.wake(key, services.gather_s(key))

    loop = _loop(context, services, reconcile)
    loop.need(NODES)
    of(NODES).on_change(node_changed)
    loop.follow(ENDPOINT_SLICES, lambda item: [(item.namespace, one.partition("/")[2]) for one in _service_of(item)])
    return loop


def endpoint_controller(context: Context) -> Controller:
    """Reconciles the Endpoints of each Service with a selector."""
    of = context.informers.of
    services = Services(of(SERVICES), of(PODS))
    known = of(ENDPOINTS)

    async def reconcile(key: Key) -> None:
        service, item = services.get(key), known.get(*key)
        before = item.obj() if item is not None else None
        if service is None:
            if of(SERVICES).get(*key) is None and before is not None and _is_ours(before):
                await _drop(key, before["metadata"]["uid"])
            return
        subsets, is_over = endpoints.desired_subsets(service, services.members(service))
        desired = endpoints.desired_endpoints_object(service, subsets, is_over, before)
        if desired is not None and before is None:
            await context.api.create(ENDPOINTS, desired)
        elif desired is not None:
            await context.api.update(ENDPOINTS, desired)

    async def _drop(key: Key, uid: str) -> None:
        try:
            await context.api.delete(ENDPOINTS, *key, Deletion(uid=uid))
        except NotFoundError:
            return

    loop = _loop(context, services, reconcile)
    loop.follow(ENDPOINTS)
    return loop


def _loop(context: Context, services: Services, reconcile: Callable[[Key], Awaitable[None]]) -> Loop:
    loop = Loop(context, reconcile)
    loop.follow(SERVICES)
    loop.need(PODS)

    def pod_changed(before: Item | None, after: Item | None) -> None:
        for key in keys_of(services, (before, after)):
            loop.wake(key, services.gather_s(key))

    context.informers.of(PODS).on_change(pod_changed)
    return loop


def _service_of(item: Item) -> list[str]:
    labels = head(item).labels
    if labels.get(MANAGED_BY) != CONTROLLER or SERVICE_NAME not in labels:
        return []
    return [f"{item.namespace}/{labels[SERVICE_NAME]}"]


def _is_owned(obj: Obj, uid: str) -> bool:
    owners = obj["metadata"].get("ownerReferences", [])
    return any(owner["uid"] == uid for owner in owners)


def _is_ours(obj: Obj) -> bool:
    labels = obj["metadata"].get("labels", {})
    return bool(labels.get(endpoints.MANAGED_BY) == endpoints.CONTROLLER)
