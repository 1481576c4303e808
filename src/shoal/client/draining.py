"""Drains a node as kubectl does: selects the pods to evict and evicts them until they are gone.

Pods of DaemonSets and mirror pods stay, since they would only come back. A pod that no controller would make again goes
with force alone. Budgets are respected: an eviction that one forbids is tried again until the time is up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from shoal.api.partial import PartialPod
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.clock import Clock
from shoal.client.item import Item, Key
from shoal.client.kind import NODES, PODS
from shoal.client.port import Api, Patch, Select
from shoal.client.refusals import BusyError, NotFoundError, StaleError
from shoal.units.errors import UserError

_MIRROR = "kubernetes.io/config.mirror"
_POLL_S, _AGAIN_S = 0.5, 5.0


async def cordon(api: Api, node: str) -> None:
    await api.patch(NODES, "", node, Patch("strategic", {"spec": {"unschedulable": True}}))


async def pods_to_evict(api: Api, node: str, *, force: bool) -> list[Item]:
    """A UserError names those that need --force."""
    going, unmanaged = list[Item](), list[str]()
    for item in await _pods_on(api, node):
        pod = item.read(PartialPod)
        owners = [one.kind for one in pod.metadata.owner_references or () if one.controller]
        if _MIRROR in (pod.metadata.annotations or {}) or "DaemonSet" in owners:
            continue
        if not owners and pod.status.phase not in TERMINAL_PHASES and not force:
            unmanaged.append("/".join(item.key))
        going.append(item)
    if unmanaged:
        names = ", ".join(unmanaged[:3]) + (f" and {len(unmanaged) - 3} more" if len(unmanaged) > 3 else "")
        raise UserError(f"no controller would make {names} again", fix="evict them nevertheless with --force")
    return going


async def _pods_on(api: Api, node: str) -> list[Item]:
    return (await api.list(PODS, "", Select(fields=f"spec.nodeName={node}"))).items


class Eviction:
    """Evicts the pods of a node and reports progress through `say`."""

    def __init__(self, api: Api, clock: Clock, say: Callable[[str], object]) -> None:
        self._api = api
        self._clock = clock
        self._say = say
        self._refusals: dict[Key, str] = {}
        """Why those that were not evicted yet were not."""

    async def run(self, nodes: Collection[str], pods: Sequence[Item], timeout_s: float) -> list[str]:
        """A line for each pod that is still there when the time is up. `nodes`: those on which the pods run."""
        ends_s = self._clock.seconds() + timeout_s
        staying = {item.key: item for item in pods}
        to_ask, again_s = dict(staying), 0.0
        while staying:
            now = self._clock.seconds()
            if to_ask and now >= again_s:
                to_ask = {key: item for key, item in to_ask.items() if not await self._evicted(item)}
                again_s = now + _AGAIN_S
            uids = {item.uid for node in nodes for item in await _pods_on(self._api, node)}
            for key in [key for key, item in staying.items() if item.uid not in uids]:
                self._say(f"{'/'.join(key)} has left")
                del staying[key]
                to_ask.pop(key, None)
            if self._clock.seconds() >= ends_s:
                break
            if staying:
                await self._clock.sleep(_POLL_S)
        return [f"{'/'.join(key)} is still there: {self._refusals.get(key, 'it has not ended')}" for key in staying]

    async def _evicted(self, item: Item) -> bool:
        options = {"deleteOptions": {"preconditions": {"uid": item.uid}}}
        try:
            await self._api.post(PODS, *item.key, "eviction", options)
        except (NotFoundError, StaleError):
            # It is gone, and perhaps another has its name: the next look shows.
            return True
        except BusyError as error:
            if self._refusals.get(item.key) != str(error):
                self._say(f"{'/'.join(item.key)} has to wait: {error}")
            self._refusals[item.key] = str(error)
            return False
        self._refusals.pop(item.key, None)
        self._say(f"{'/'.join(item.key)} is evicted")
        return True
