"""Writes the chosen volumes of a pod to claims and volumes, and waits until they are bound."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import PODS, VOLUME_CLAIMS, VOLUMES
from shoal.client.volumes.needs import SELECTED_NODE, Mounts, VolumeNeeds, WantedClaim
from shoal.controllers.bind_preparation.users import User
from shoal.units.errors import TemporaryError

BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_LONGEST_S, _POLL_S = 600.0, 0.25


class VolumeWriter:
    def __init__(self, context: Context, needs: VolumeNeeds) -> None:
        self._api = context.api
        self._clock = context.clock
        self._pods = context.informers.of(PODS)
        self._needs = needs

    async def choose(self, wanted: Iterable[WantedClaim], node: str) -> None:
        for one in wanted:
            if one.volume is not None:
                await self._keep_volume(one)
            else:
                await self._choose_node(one, node)

    async def bound(self, user: User, mounts: Mounts, wanted: Iterable[WantedClaim], node: str) -> None:
        """Returns when they are provisioned and bound by other controllers, which may take minutes; nothing is written
        meanwhile.
        """
        ends_s = self._clock.seconds() + _LONGEST_S
        chosen = tuple(wanted)
        while not self._needs.are_bound(mounts):
            user.check()
            if self._clock.seconds() >= ends_s:
                raise TemporaryError("binding volumes: context deadline exceeded", 1.0)
            if not self._needs.is_still_selected(chosen, node):
                raise TemporaryError("binding volumes: provisioning failed for the selected node", 1.0)
            item = self._pods.get(*user.key)
            if item is None or item.uid != user.uid:
                raise TemporaryError("binding volumes: pod does not exist any more", 1.0)
            await self._clock.sleep(_POLL_S)

    async def _keep_volume(self, wanted: WantedClaim) -> None:
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

    async def _choose_node(self, wanted: WantedClaim, node: str) -> None:
        if wanted.claim.metadata.annotations.get(SELECTED_NODE) == node:
            return
        obj: Obj = (await self._api.get(VOLUME_CLAIMS, *wanted.claim.key)).obj()
        obj["metadata"].setdefault("annotations", {})[SELECTED_NODE] = node
        await self._api.update(VOLUME_CLAIMS, obj)
