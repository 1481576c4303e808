"""Carries out a scheduling decision: binds volumes and devices first, then the pod."""

from __future__ import annotations

from typing import NamedTuple

from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.volumes.needs import WantedClaim
from shoal.controllers.bind_preparation.claims import ClaimWriter
from shoal.controllers.bind_preparation.users import User
from shoal.controllers.bind_preparation.volumes import VolumeWriter
from shoal.embedded.scheduler.device_fit import ClaimDevices, DeviceFit
from shoal.embedded.scheduler.pod_info import PodInfo
from shoal.embedded.scheduler.volume_fit import VolumeFit, mounts_of


class Decision(NamedTuple):
    pod: PodInfo
    node: str
    wanted: list[WantedClaim]
    devices_for: ClaimDevices


class Binder:
    def __init__(self, context: Context, volumes: VolumeFit, devices: DeviceFit) -> None:
        self._api = context.api
        self._volumes = VolumeWriter(context, volumes.needs)
        self._claims = ClaimWriter(context, devices.reach)

    async def bind(self, decision: Decision) -> None:
        """Binds the pod after its volumes are bound."""
        pod = decision.pod
        for key in pod.request.device_claims:
            await self._claims.reserve(key, _user(pod), decision.devices_for.get(key, ()), decision.node)
        body: Obj = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": decision.node},
        }
        await self._api.post(PODS, pod.namespace, pod.name, "binding", body)

    async def choose_volumes(self, decision: Decision) -> None:
        await self._volumes.choose(decision.wanted, decision.node)

    async def volumes_bound(self, decision: Decision) -> None:
        pod = decision.pod
        await self._volumes.bound(_user(pod), mounts_of(pod), decision.wanted, decision.node)


def _user(pod: PodInfo) -> User:
    return User(pod.namespace, pod.name, pod.uid)
