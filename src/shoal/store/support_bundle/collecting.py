"""Collects what a support bundle contains from a cluster: versions, Shoal's parts with their configuration and logs,
Events, and the objects that decisions depend on.

Guarantees: no Secret is read, in no namespace. A part that cannot be read is left out with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, EVENTS, NODES, PODS, Kind
from shoal.client.port import Api, Select
from shoal.client.refusals import BusyError, RefusedError
from shoal.store.pod_logs import LogBounds, Requests, container_log
from shoal.store.support_bundle.archive import BundleArchive
from shoal.store.support_bundle.secrets_in_text import value_without_secrets, without_secrets

_OWN = "app.kubernetes.io/name=shoal"
_PARTS = (DEPLOYMENTS, DAEMON_SETS, PODS)
_BOUNDS = LogBounds(2 << 20, 20_000)
_MOST_EVENTS = 5_000
_DRIVER = "nvidia.com/cuda.driver-version.full"
_EVENT_FIELDS = (
    *("type", "reason", "message", "note", "count", "firstTimestamp", "lastTimestamp", "eventTime", "action"),
    *("involvedObject", "regarding", "source", "reportingComponent", "reportingController", "series"),
)


class BundleSource:
    def __init__(self, api: Api, requests: Requests, archive: BundleArchive) -> None:
        self._api = api
        self._requests = requests
        self._archive = archive

    async def collect(self) -> None:
        """All but the snapshot, the diagnosis and the logs."""
        await self._part("versions.json", self._versions)
        await self._part("components.json", self._components)
        await self._part("configuration.json", self._configuration)
        await self._part("events.json", self._events)

    async def logs(self) -> None:
        """Of the containers of Shoal's own pods, and of those that ended before."""
        try:
            pods = await self._listed(PODS, _OWN)
        except (RefusedError, BusyError) as error:
            self._archive.leave_out("logs", str(error))
            return
        for pod in pods:
            statuses = (pod.get("status") or {}).get("containerStatuses") or ()
            for status in statuses:
                await self._log(pod, str(status.get("name", "")), is_former=False)
                if status.get("restartCount"):
                    await self._log(pod, str(status.get("name", "")), is_former=True)

    async def _log(self, pod: Obj, container: str, *, is_former: bool) -> None:
        meta = pod["metadata"]
        name = f"logs/{meta['namespace']}/{meta['name']}/{container}{'.previous' if is_former else ''}.log"
        try:
            text = await container_log(self._requests, pod, container, _BOUNDS, is_former=is_former)
        except (RefusedError, BusyError) as error:
            self._archive.leave_out(name, str(error))
            return
        self._archive.add(name, without_secrets(text).encode())

    async def _part(self, name: str, read: Callable[[], Awaitable[object]]) -> None:
        try:
            self._archive.add_json(name, await read())
        except (RefusedError, BusyError) as error:
            self._archive.leave_out(name, str(error))

    async def _versions(self) -> object:
        server = msgspec.json.decode(await self._requests.ask("GET", "/version", {}))
        nodes = await self._listed(NODES)
        counts: dict[str, Counter[str]] = {}
        for node in nodes:
            info = (node.get("status") or {}).get("nodeInfo") or {}
            labels = node["metadata"].get("labels") or {}
            for field in ("kubeletVersion", "containerRuntimeVersion", "kernelVersion", "osImage", "architecture"):
                counts.setdefault(field, Counter())[str(info.get(field, ""))] += 1
            counts.setdefault("driver", Counter())[str(labels.get(_DRIVER, ""))] += 1
        return {"server": server, "nodes": len(nodes), "nodesBy": {name: dict(found) for name, found in counts.items()}}

    async def _components(self) -> object:
        return value_without_secrets([obj for kind in _PARTS for obj in await self._listed(kind, _OWN)])

    async def _configuration(self) -> object:
        found = await self._listed(CONFIG_MAPS, _OWN)
        return value_without_secrets([{**_head(obj), "data": _texts(obj.get("data") or {})} for obj in found])

    async def _events(self) -> object:
        events = sorted(await self._listed(EVENTS), key=_last_seen)[-_MOST_EVENTS:]
        return value_without_secrets([{**_head(one), **_picked(one, _EVENT_FIELDS)} for one in events])

    async def _listed(self, kind: Kind, selector: str = "") -> list[Obj]:
        found = (await self._api.list(kind, "", Select(labels=selector))).items
        return [{"apiVersion": kind.api_version, "kind": kind.name, **item.obj()} for item in found]


def _head(obj: Obj) -> Obj:
    meta = obj["metadata"]
    return {**_picked(obj, ("apiVersion", "kind")), "metadata": _picked(meta, ("name", "namespace", "labels"))}


def _picked(obj: Obj, fields: Iterable[str]) -> Obj:
    return {field: obj[field] for field in fields if field in obj}


def _texts(data: dict[str, Any]) -> dict[str, Any]:
    return {name: without_secrets(text) if isinstance(text, str) else text for name, text in data.items()}


def _last_seen(event: Obj) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")
