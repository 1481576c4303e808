"""Stops the pods of a machine that is no node any more, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from shoal.agent.kubelet.mounts import unmount_below
from shoal.agent.kubelet.pod_store import PodStore, StoredPod
from shoal.agent.kubelet.runtime import PodRuntime, RunKey

Obj = dict[str, Any]
_GRACE_S = 30.0


async def stop_all(runtime_of: Callable[[Obj], PodRuntime], store: PodStore, grace_s: float = _GRACE_S) -> None:
    """Stop all containers, and remove what is left of the pods. Raises TemporaryError if a runtime does not answer."""

    async def stop(stored: StoredPod) -> None:
        run, runtime = stored.run, runtime_of(stored.pod)
        for one in run.containers:
            key = RunKey(run.uid, one.name, one.restarts)
            if one.is_alive and await runtime.find(key) is not None:
                await runtime.stop(key, grace_s)
        await asyncio.to_thread(unmount_below, store.folder_of(run.uid))
        await runtime.remove(run.uid)
        store.remove(run.uid)

    await asyncio.gather(*(stop(one) for one in store.all()))
