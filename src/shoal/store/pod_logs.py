"""Reads logs of containers, those of the containers before a restart too. Every log is bounded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from urllib.parse import quote

import msgspec

from shoal.client.item import Obj
from shoal.client.refusals import BusyError, RefusedError


class Requests(Protocol):
    """Requests for what is no object: `Connection.ask`."""

    async def ask(self, method: str, path: str, query: dict[str, str]) -> bytes: ...


class LogBounds(msgspec.Struct, frozen=True):
    bytes: int
    lines: int
    """The last ones."""
    pods: int = 50


async def container_log(
    requests: Requests, pod: Obj, container: str, bounds: LogBounds, *, is_former: bool = False
) -> str:
    """Raises RefusedError or BusyError. `is_former`: of the container before its last restart."""
    query = {"container": container, "limitBytes": str(bounds.bytes), "tailLines": str(bounds.lines)}
    if is_former:
        query["previous"] = "true"
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{quote(meta['namespace'], safe='')}/pods/{quote(meta['name'], safe='')}/log"
    return (await requests.ask("GET", path, query)).decode("utf-8", "replace")


async def logs_of(requests: Requests, pods: Iterable[Obj], bounds: LogBounds) -> dict[str, str]:
    """By `namespace/pod`, without pods of which no log can be read."""
    found: dict[str, str] = {}
    for pod in [*pods][: bounds.pods]:
        texts = []
        for status in _statuses(pod):
            for is_former in (True, False) if status.get("restartCount") else (False,):
                try:
                    texts.append(
                        await container_log(requests, pod, str(status.get("name")), bounds, is_former=is_former)
                    )
                except (RefusedError, BusyError):
                    continue
        if texts:
            found[f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"] = "\n".join(texts)
    return found


def _statuses(pod: Obj) -> list[Obj]:
    """Of the containers that run or have run."""
    status = pod.get("status") or {}
    all_of_them = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return [one for one in all_of_them if one.get("containerID") or one.get("restartCount")]
