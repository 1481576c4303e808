"""Waiting for what controllers and kubelets do in their own time: asked again until it holds, never slept for.

A refused wait shows what stood there at the end, because "timed out" helps nobody.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from build.api_objects import ready_for_pods
from build.cluster_api import PATIENCE_S, Api, Obj

_PAUSE_S = 0.04
CORE = "v1"
NAMESPACE_ENDS_S = 300.0
"""A namespace controller works on few namespaces at a time, and each test leaves one to it."""


async def until(api: Api, path: str, holds: Callable[[Obj], Any], *, within_s: float = PATIENCE_S, **query: Any) -> Obj:
    """What stands at the path, object or list, once it holds; until it is there at all it does not."""
    seen: Any = None
    try:
        async with asyncio.timeout(within_s):
            while True:
                answer = await api.get(path, **query)
                seen = answer.body
                if answer.code == 200 and holds(seen):
                    found: Obj = seen
                    return found
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError:
        raise AssertionError(f"{path} stays {json.dumps(_shown(seen))[:6000]}") from None


async def until_gone(api: Api, path: str, *, within_s: float = PATIENCE_S) -> None:
    seen: Any = None
    try:
        async with asyncio.timeout(within_s):
            while (answer := await api.get(path)).code != 404:
                seen = answer.body
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError:
        raise AssertionError(f"{path} is still there: {json.dumps(_shown(seen))[:4000]}") from None


async def until_items(
    api: Api, path: str, holds: Callable[[list[Obj]], Any], *, within_s: float = PATIENCE_S, **query: Any
) -> list[Obj]:
    found: list[Obj] = (await until(api, path, lambda listed: holds(listed["items"]), within_s=within_s, **query))[
        "items"
    ]
    return found


async def until_pods(api: Api, number: int, labels: str = "") -> list[Obj]:
    """So many pods that are not being deleted, by name."""
    found = await until_items(api, api.core("pods"), lambda pods: len(living(pods)) == number, labelSelector=labels)
    return sorted(living(found), key=name_of)


async def create(api: Api, obj: Obj, plural: str) -> Obj:
    """In the test's namespace, once pods can be made there."""
    await ready_for_pods(api)
    return (await api.post(where(api, obj["apiVersion"], plural), obj)).ok(201)


def where(api: Api, version: str, plural: str, *rest: str) -> str:
    return api.core(plural, *rest) if version == CORE else api.group(version, plural, *rest)


async def until_said(api: Api, name: str, reason: str) -> list[Obj]:
    """The Events about the object of that name with this reason: at least one."""
    wanted = f"involvedObject.name={name},reason={reason}"
    return await until_items(api, api.core("events"), bool, fieldSelector=wanted)


def living(pods: list[Obj]) -> list[Obj]:
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def name_of(obj: Obj) -> str:
    found: str = obj["metadata"]["name"]
    return found


def conditions(obj: Obj) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message by type."""
    found = obj.get("status", {}).get("conditions") or ()
    return {one["type"]: (one["status"], one.get("reason", ""), one.get("message", "")) for one in found}


def is_true(obj: Obj, condition: str) -> bool:
    return conditions(obj).get(condition, ("",))[0] == "True"


def _shown(seen: Any) -> Any:
    """Without the fields that nobody reads in a failed test."""
    if isinstance(seen, dict):
        return {key: _shown(value) for key, value in seen.items() if key not in ("managedFields", "spec")}
    return [_shown(one) for one in seen] if isinstance(seen, list) else seen
