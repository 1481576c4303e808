"""The kubelet's part, played by the test: pods that no scheduler takes run, become ready and end as it is told.

Controllers are tested so on every cluster, whether kubelets are there or not, and nobody waits for programs to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from typing import Any

from build.api_objects import IMAGE
from build.cluster_api import STRATEGIC, Api, Obj
from build.live_waits import name_of

_PAUSE_S = 0.05


def always(_pod: Obj) -> bool:
    return True


async def run(api: Api, name: str, *, ready: bool = True, ip: str = "") -> None:
    """The pod runs, and is ready or not."""
    verdict = "True" if ready else "False"
    status: Obj = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": verdict, "lastTransitionTime": now()}],
        "containerStatuses": [_container(ready, {"running": {"startedAt": now()}})],
    }
    if ip:
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    await _say(api, name, status)


async def end(api: Api, name: str, code: int = 0, *extra: Obj) -> None:
    """Its program ends with this code; `extra` are conditions to say beside."""
    ended = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now(), "finishedAt": now()}
    over = {"type": "Ready", "status": "False", "lastTransitionTime": now()}
    status = {
        "phase": "Failed" if code else "Succeeded",
        "conditions": [over, *extra],
        "containerStatuses": [_container(False, {"terminated": ended})],
    }
    await _say(api, name, status)


async def bury(api: Api, name: str) -> None:
    """What was asked to end has ended."""
    await api.delete(api.core("pods", name), gracePeriodSeconds=0)


@asynccontextmanager
async def everything_runs(api: Api, is_well: Callable[[Obj], bool] = always) -> AsyncIterator[None]:
    """Pods of the test's namespace become ready by themselves, if they are well, and go when they are deleted."""
    numbers = count(1)

    async def play() -> None:
        while True:
            for pod in (await api.get(api.core("pods"))).ok()["items"]:
                phase = pod["status"].get("phase", "Pending")
                with suppress(AssertionError):
                    if "deletionTimestamp" in pod["metadata"]:
                        await bury(api, name_of(pod))
                    elif phase == "Pending" and is_well(pod):
                        await run(api, name_of(pod), ip=f"10.250.0.{next(numbers) % 250 + 1}")
            await asyncio.sleep(_PAUSE_S)

    task = asyncio.create_task(play())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - the cluster lives in real time


def _container(ready: bool, state: Obj) -> Obj:
    return {"name": "main", "image": IMAGE, "imageID": "", "restartCount": 0, "ready": ready, "state": state}


async def _say(api: Api, name: str, status: dict[str, Any]) -> None:
    (await api.patch(api.core("pods", name, "status"), {"status": status}, STRATEGIC)).ok()
