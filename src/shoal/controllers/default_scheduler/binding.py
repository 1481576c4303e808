"""A decision carried out: volumes and devices first, then the pod's node; or whatever became of the try.

Every write can be repeated: a successor of a killed scheduler finds the choice in the claims and goes on from there.
"""

from __future__ import annotations

import random
import uuid
from typing import NamedTuple

import msgspec

from shoal.api.slices import Reach
from shoal.api.wire import enc_hook
from shoal.controllers.default_scheduler.asks import PodFacts
from shoal.controllers.default_scheduler.device_fit import DeviceFit, Given
from shoal.controllers.default_scheduler.volume_fit import SELECTED_NODE, VolumeFit, Wanted
from shoal.engine.dra.requests import Pick, Picks
from shoal.store.live.context import Context
from shoal.store.live.item import Key, Obj
from shoal.store.live.kind import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, VOLUME_CLAIMS, VOLUMES
from shoal.units.errors import TemporaryError
from shoal.units.quantity import Quantity

BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_DEVICE_FINALIZER = "resource.kubernetes.io/delete-protection"
_LONGEST_S, _LOOK_S = 600.0, 0.25


class Decision(NamedTuple):
    pod: PodFacts
    node: str
    wanted: list[Wanted]
    given: Given


class Binder:
    def __init__(self, context: Context, volumes: VolumeFit, devices: DeviceFit) -> None:
        self._api = context.api
        self._clock = context.clock
        self._draw: random.Random = context.draw
        self._classes = context.informers.of(DEVICE_CLASSES)
        self._pods = context.informers.of(PODS)
        self._volumes = volumes
        self._devices = devices

    async def bind(self, decision: Decision) -> None:
        """Once the volumes are there."""
        pod = decision.pod
        for key in pod.ask.device_claims:
            await self._reserve(key, decision)
        body: Obj = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": decision.node},
        }
        await self._api.post(PODS, pod.namespace, pod.name, "binding", body)

    # -- volumes ----------------------------------------------------------------------------------------------------

    async def choose_volumes(self, decision: Decision) -> None:
        for wanted in decision.wanted:
            if wanted.volume is not None:
                await self._keep_volume(wanted)
            else:
                await self._choose_node(wanted, decision.node)

    async def volumes_bound(self, decision: Decision) -> None:
        """Returns when others have made and bound them: that may take minutes, and nothing is written meanwhile."""
        ends_s = self._clock.seconds() + _LONGEST_S
        while not self._volumes.are_bound(decision.pod):
            if self._clock.seconds() >= ends_s:
                raise TemporaryError("binding volumes: context deadline exceeded", 1.0)
            if not self._volumes.is_still_selected(decision.wanted, decision.node):
                raise TemporaryError("binding volumes: provisioning failed for the selected node", 1.0)
            item = self._pods.get(*decision.pod.key)
            if item is None or item.uid != decision.pod.uid:
                raise TemporaryError("binding volumes: pod does not exist any more", 1.0)
            await self._clock.sleep(_LOOK_S)

    async def _keep_volume(self, wanted: Wanted) -> None:
        volume, claim = wanted.volume, wanted.claim
        if volume is None or volume.is_for(claim):
            return
        obj = (await self._api.get(VOLUMES, "", volume.metadata.name)).obj()
        meta = claim.metadata
        ref = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        }
        if obj["spec"].get("claimRef", ref)["uid"] != meta.uid:
            raise TemporaryError("binding volumes: the volume was taken by another claim", 1.0)
        obj["spec"]["claimRef"] = ref
        obj["metadata"].setdefault("annotations", {})[BY_CONTROLLER] = "yes"
        await self._api.update(VOLUMES, obj)

    async def _choose_node(self, wanted: Wanted, node: str) -> None:
        if wanted.claim.metadata.annotations.get(SELECTED_NODE) == node:
            return
        obj = (await self._api.get(VOLUME_CLAIMS, *wanted.claim.key)).obj()
        obj["metadata"].setdefault("annotations", {})[SELECTED_NODE] = node
        await self._api.update(VOLUME_CLAIMS, obj)

    # -- devices ----------------------------------------------------------------------------------------------------

    async def _reserve(self, key: Key, decision: Decision) -> None:
        """The allocation, if there is none yet, and the pod among those it is reserved for: in one write."""
        pod = decision.pod
        obj = (await self._api.get(RESOURCE_CLAIMS, *key)).obj()
        status = obj.setdefault("status", {})
        if "allocation" not in status:
            finalizers = obj["metadata"].setdefault("finalizers", [])
            if _DEVICE_FINALIZER not in finalizers:
                finalizers.append(_DEVICE_FINALIZER)
                obj = (await self._api.update(RESOURCE_CLAIMS, obj)).obj()
                status = obj.setdefault("status", {})
            status["allocation"] = self._allocation(obj, decision.given.get(key, ()), decision.node)
        users = status.setdefault("reservedFor", [])
        if any(user["uid"] == pod.uid for user in users):
            return
        users.append({"resource": "pods", "name": pod.name, "uid": pod.uid})
        await self._api.update(RESOURCE_CLAIMS, obj, "status")

    def _allocation(self, claim: Obj, picks: Picks, node: str) -> Obj:
        config = self._config(claim)
        devices: Obj = {"results": [self._result(pick) for pick in picks]} | ({"config": config} if config else {})
        found: Obj = {"devices": devices, "allocationTimestamp": self._clock.text()}
        selector = _selector(self._devices.reach(picks), node)
        return found | ({"nodeSelector": selector} if selector is not None else {})

    def _config(self, claim: Obj) -> list[Obj]:
        """Of the classes first, then of the claim, as drivers read it."""
        found: list[Obj] = []
        devices = claim["spec"].get("devices", {})
        for request in devices.get("requests", ()):
            exact = request.get("exactly")
            asks = [(request["name"], exact)] if exact else []
            asks += [(f"{request['name']}/{one['name']}", one) for one in request.get("firstAvailable", ())]
            for name, ask in asks:
                item = self._classes.get("", ask["deviceClassName"])
                configs = item.obj()["spec"].get("config", ()) if item is not None else ()
                found += [{"source": "FromClass", "requests": [name], **config} for config in configs]
        return found + [{"source": "FromClaim", **config} for config in devices.get("config", ())]

    def _result(self, pick: Pick) -> Obj:
        pool, _, device = pick.device.rpartition("/")
        driver, _, pool = pool.partition("/")
        found: Obj = {"request": pick.request, "driver": driver, "pool": pool, "device": device}
        if pick.admin:
            found["adminAccess"] = True
        if pick.share:
            found["shareID"] = str(uuid.UUID(int=self._draw.getrandbits(128), version=4))
            found["consumedCapacity"] = {name: str(Quantity(nano)) for name, nano in pick.share}
        return found


def _selector(reaches: list[Reach], node: str) -> Obj | None:
    """Where all of the devices can be used; None for everywhere."""
    if any(reach.node_name for reach in reaches):
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        return {"nodeSelectorTerms": [{"matchFields": [field]}]}
    term: Obj = {}
    for reach in reaches:
        for one in reach.node_selector.node_selector_terms if reach.node_selector is not None else ():
            plain: Obj = msgspec.json.decode(msgspec.json.encode(one, enc_hook=enc_hook))
            for name, requirements in plain.items():
                term.setdefault(name, []).extend(requirements)
    return {"nodeSelectorTerms": [term]} if term else None
