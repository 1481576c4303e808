"""The driver of resource claims on a simulated node: publishes its devices, and prepares those of claims for pods.

Devices, refusals and changes of the MIG layout are computed by the code of the node agent. A claim is prepared when its
first pod arrives, and stays prepared until its last pod has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from shoal.api.claims import ResourceClaim
from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.allocation import HeldDevices, Obj
from shoal.devices.cdi_devices import CLAIM_KIND, claim_device, qualified
from shoal.devices.claim_devices import (
    ClaimName,
    PreparedClaim,
    PreparedDevice,
    check_not_held,
    devices_of_claim,
)
from shoal.devices.claim_places import places_of, steps_for_claim
from shoal.devices.claim_sharing import PIPE_INSIDE, DeviceSharing
from shoal.devices.claimable_devices import CLAIM_DRIVER, ClaimableDevice, ClaimableInput, claimable_devices
from shoal.devices.dcgm_holders import ClaimedDevice
from shoal.devices.mig_layout_checks import Problem
from shoal.devices.pod_claims import ContainerClaim, container_claims
from shoal.devices.resource_slices import Published, partitions_of, possible_devices
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_gpus import ContainerDevices
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.embedded.gpus.simulated_health import simulated_health
from shoal.embedded.gpus.usage_counters import UsageCounters
from shoal.units.errors import UserError, Where


class ClaimedDevices:
    def __init__(self, manager: DeviceManager, counters: UsageCounters, at_s: Callable[[], float]) -> None:
        self._manager, self._at_s = manager, at_s
        self._driver = SimulatedDriver(manager, counters, at_s)
        self._prepared: dict[str, PreparedClaim] = {}
        """By the uid of the claim."""
        self._users: dict[str, frozenset[str]] = {}
        """The claims of each pod, by uid."""

    def published(self) -> Published:
        given = self._input()
        if self._manager.machine.has_dynamic_mig:
            return partitions_of(given)
        return Published(tuple(one.described for one in claimable_devices(given)))

    def prepare(self, pod: Obj, claims: Mapping[str, ResourceClaim]) -> tuple[ContainerDevices, ...]:
        """The devices of each container. `claims`: by name. Raises `UserError` for a claim that cannot be prepared."""
        uid = pod["metadata"]["uid"]
        uses = list(container_claims(pod))
        self._users[uid] = frozenset(claim.metadata.uid for claim in claims.values())
        prepared = {name: self._prepare(claim) for name, claim in claims.items()}
        found = [(use, self._devices(use, prepared[use.claim])) for use in uses if use.claim in prepared]
        users = {name: max(len(claim.status.reserved_for), 1) for name, claim in claims.items()}
        held = [
            HeldDevices(
                use.container,
                use.resource,
                tuple(self._physical(use, prepared[use.claim], one, users[use.claim]) for one in own),
            )
            for use, own in found
            if own
        ]
        self._manager.hold(uid, held, dict(_claimed(found, prepared)))
        return tuple(self._given(use, prepared[use.claim], own) for use, own in found if own)

    def release(self, uid: str) -> None:
        """The pod has ended."""
        left = self._users.pop(uid, frozenset())
        used = frozenset[str]().union(*self._users.values())
        for claim in left - used:
            self._prepared.pop(claim, None)

    def _prepare(self, claim: ResourceClaim) -> PreparedClaim:
        metadata, node = claim.metadata, self._manager.machine.name
        asked = ClaimName(metadata.namespace, metadata.name, metadata.uid)
        if asked.uid in self._prepared:
            return self._prepared[asked.uid]
        found = devices_of_claim(asked, claim, node, self._possible())
        check_not_held(PreparedClaim(asked, found), self._prepared)
        self._create([one.device for one in found], asked)
        wanted = PreparedClaim(asked, devices_of_claim(asked, claim, node, self._present()))
        self._prepared[asked.uid] = wanted
        return wanted

    def _create(self, names: Sequence[str], asked: ClaimName) -> None:
        if not self._manager.machine.has_dynamic_mig or {*names} <= self._present().keys():
            return
        held = {device.uuid for claim in self._prepared.values() for device in claim.devices}
        steps = steps_for_claim(names, places_of(self._manager.reported), self._manager.mig.present(held))
        if isinstance(steps, Problem):
            raise UserError(steps.what, where=Where(obj=str(asked)), fix=steps.fix)
        failure = self._manager.mig.carry_out(steps)
        if failure:
            raise UserError(failure, where=Where(obj=str(asked)))

    def _input(self) -> ClaimableInput:
        health = {one.uuid: one for one in simulated_health(self._manager, self._driver, self._at_s())}
        return ClaimableInput(self._driver.versions(), self._manager.reported, health)

    def _present(self) -> Mapping[str, ClaimableDevice]:
        return {one.name: one for one in claimable_devices(self._input())}

    def _possible(self) -> Mapping[str, ClaimableDevice]:
        return possible_devices(self._input()) if self._manager.machine.has_dynamic_mig else self._present()

    def _devices(self, use: ContainerClaim, claim: PreparedClaim) -> list[PreparedDevice]:
        return [one for one in claim.devices if use.uses(one.requests)]

    def _physical(self, use: ContainerClaim, claim: PreparedClaim, one: PreparedDevice, users: int) -> PhysicalDevice:
        slot, cut = self._manager.place_of(one.uuid)
        return PhysicalDevice(
            id=_cdi_id(claim, one),
            resource=use.resource,
            physical=one.uuid,
            gpu=slot.index,
            numa=slot.numa,
            island=slot.island,
            memory_mib=slot.memory_mib if cut is None else cut.memory_mib,
            replicas=users,
            cut=cut,
        )

    def _given(self, use: ContainerClaim, claim: PreparedClaim, own: Sequence[PreparedDevice]) -> ContainerDevices:
        return ContainerDevices(
            container=use.container,
            resource=use.resource,
            device_ids=tuple(_cdi_id(claim, one) for one in own),
            gpus=tuple(sorted({self._manager.place_of(one.uuid)[0].index for one in own})),
            environment=_environment(own),
        )


def _environment(devices: Sequence[PreparedDevice]) -> dict[str, str]:
    """As the CDI specification of a claim sets it: no other component adds devices."""
    has_mps = any(isinstance(one.sharing, DeviceSharing) and one.sharing.has_mps for one in devices)
    return {"NVIDIA_VISIBLE_DEVICES": "void", **({"CUDA_MPS_PIPE_DIRECTORY": PIPE_INSIDE} if has_mps else {})}


def _claimed(
    found: Sequence[tuple[ContainerClaim, Sequence[PreparedDevice]]], prepared: Mapping[str, PreparedClaim]
) -> Iterator[tuple[str, ClaimedDevice]]:
    for use, own in found:
        claim = prepared[use.claim]
        for one in own:
            name = claim.claim
            yield _cdi_id(claim, one), ClaimedDevice(name.name, name.namespace, CLAIM_DRIVER, one.pool, one.device)


def _cdi_id(claim: PreparedClaim, device: PreparedDevice) -> str:
    """By which containers' statuses name a device of a claim."""
    return qualified(CLAIM_KIND, [claim_device(claim.claim.uid, device.device)])[0]
