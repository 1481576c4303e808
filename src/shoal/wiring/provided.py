"""Creates the objects that an embedded cluster has from its start besides Kubernetes' own."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from shoal.autoscale.exposed_metrics.documents import CUSTOM, CUSTOM_VERSIONS, EXTERNAL, EXTERNAL_VERSION
from shoal.client.kind import API_SERVICES, CLUSTER_ROLES, DEVICE_CLASSES, SERVICES, STORAGE_CLASSES
from shoal.client.port import Api, Patch
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.devices.device_classes import device_classes
from shoal.embedded.controllers.volumes.classes import local_class
from shoal.embedded.kubelets.endpoint.metrics_objects import SERVICE, api_service, metrics_objects

if TYPE_CHECKING:
    from shoal.client.item import Obj
    from shoal.embedded.kubelets.endpoint.endpoint import Ports

METRICS = "v1beta1.metrics.k8s.io"
_KINDS = {kind.name: kind for kind in (SERVICES, CLUSTER_ROLES, API_SERVICES)}


async def provide_metrics(api: Api, ports: Ports, ca: str) -> None:
    await put(api, metrics_objects(ports.host, ports.kubelet_port, ca))


CUSTOM_APIS = tuple((CUSTOM, version) for version in CUSTOM_VERSIONS)
EXTERNAL_APIS = ((EXTERNAL, EXTERNAL_VERSION),)


async def provide_metric_apis(api: Api, ca: str, wanted_apis: Iterable[tuple[str, str]] = CUSTOM_APIS) -> None:
    """Custom or external metrics, unless another server is registered for them: only one can be."""
    for group, version in wanted_apis:
        if not await is_served_elsewhere(api, group, version):
            await put(api, [api_service(group, version, ca)])


async def is_served_elsewhere(api: Api, group: str, version: str) -> bool:
    """Whether another server is registered for this version of the group."""
    try:
        found = (await api.get(API_SERVICES, "", f"{version}.{group}")).obj()
    except NotFoundError:
        return False
    return bool((found["spec"].get("service") or {}).get("name") != SERVICE)


async def has_metrics(api: Api) -> bool:
    """Whether another server serves metrics.k8s.io and answers."""
    try:
        found = (await api.get(API_SERVICES, "", METRICS)).obj()
    except NotFoundError:
        return False
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Available" and one["status"] == "True" for one in conditions)


async def provide_storage(api: Api) -> None:
    """A default class, so that claims are bound; changes to it are kept."""
    try:
        await api.create(STORAGE_CLASSES, local_class())
    except AlreadyExistsError:
        return


async def provide_device_classes(api: Api) -> None:
    """The classes that claims for GPUs name; changes to them are kept."""
    for one in device_classes():
        with suppress(AlreadyExistsError):
            await api.create(DEVICE_CLASSES, one)


async def put(api: Api, objects: Iterable[Obj]) -> None:
    """Replaces what an earlier process wrote: the endpoints have other ports now."""
    for obj in objects:
        meta = obj["metadata"]
        await api.patch(_KINDS[obj["kind"]], meta.get("namespace", ""), meta["name"], Patch("apply", obj, force=True))
