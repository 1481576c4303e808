"""A node that prepares claims, with claims given as objects instead of an API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from build.claimable import NODE, claimable_driver
from build.fake_mps import FakeMps
from build.gpu_pods import device_manager
from shoal.agent.dra.checkpoint import ClaimCheckpoint
from shoal.agent.dra.claim_preparation import ClaimPreparation
from shoal.agent.dra.claim_sharing import ClaimSharing
from shoal.agent.dra.node_devices import ClaimableDevices
from shoal.agent.protos import dra_pb2 as dra
from shoal.agent.sharing.mps_control import MpsControl
from shoal.agent.sharing.mps_daemons import MpsDaemons, MpsParts
from shoal.agent.sharing.mps_state import MpsStateFile
from shoal.agent.sharing.time_slice import TimeSlice, TimeSliceError
from shoal.api.claims import ResourceClaim
from shoal.api.wire import dec_hook
from shoal.devices.cdi_devices import CdiInput, DriverFiles
from shoal.embedded.gpus.simulated_compute_modes import SimulatedComputeModes
from shoal.embedded.gpus.simulated_driver import simulated_capabilities
from shoal.embedded.gpus.simulated_mig import SimulatedMigControl
from shoal.units.errors import TemporaryError

Obj = dict[str, Any]
DRIVER = "gpu.nvidia.com"


def allocated(name: str, *devices: str, config: Obj | None = None, **of_result: Any) -> Obj:
    """A claim with these devices of the node, all for the request `gpu`."""
    results = [{"request": "gpu", "driver": DRIVER, "pool": NODE, "device": one, **of_result} for one in devices]
    configs = [] if config is None else [{"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": config}}]
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}},
        "status": {"allocation": {"devices": {"results": results, "config": configs}}},
    }


class PreparingNode:
    """`folder` has the checkpoint and the specifications; a second node in it is the first one after a restart."""

    def __init__(
        self,
        folder: Path,
        *claims: Obj,
        machine: str = "dgx-h100",
        is_divided_on_demand: bool = False,
        mps: FakeMps | None = None,
    ) -> None:
        self.claims = {one["metadata"]["name"]: one for one in claims}
        self.is_silent = False
        """Whether the cluster does not answer."""
        self.cdi, self.checkpoint = folder / "cdi", folder / "plugin/checkpoint.json"
        self.manager = device_manager(machine)
        self.modes = SimulatedComputeModes(slot.uuid for slot in self.manager.machine.gpus)
        self.slices: list[tuple[str, TimeSlice]] = []
        """The time slices that were set."""
        self.slice_fault = ""
        self.now_s = 0.0
        driver = claimable_driver(self.manager)
        mig = SimulatedMigControl(self.manager) if is_divided_on_demand else None
        self.devices = ClaimableDevices(driver, tuple, mig=mig)
        self.preparation = ClaimPreparation(
            NODE,
            ClaimCheckpoint(self.checkpoint),
            self.cdi,
            self.devices,
            lambda: CdiInput(self.devices.gpus(), "1.2", DriverFiles(), simulated_capabilities(self.devices.gpus())),
            self,
            self._sharing(mps),
        )

    def _sharing(self, mps: FakeMps | None) -> ClaimSharing:
        if mps is None:
            return ClaimSharing(None, "", self._set_slice)
        control, state = MpsControl(str(mps.program)), MpsStateFile(mps.root / "state.json")
        parts = MpsParts(control, self.modes, state, lambda: self.now_s, mps.shared_memory)
        return ClaimSharing(MpsDaemons(parts), str(mps.root), self._set_slice)

    def _set_slice(self, uuid: str, interval: TimeSlice) -> None:
        if self.slice_fault:
            raise TimeSliceError(self.slice_fault)
        self.slices.append((uuid, interval))

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Implements `ClaimReader`."""
        if self.is_silent:
            raise TemporaryError("the API server does not answer", 1.0)
        found = self.claims.get(name)
        return None if found is None else msgspec.convert(found, ResourceClaim, dec_hook=dec_hook)

    def prepare(self, *names: str) -> dict[str, list[str]]:
        """The CDI ids of each claim. Raises `ValueError` for the first error."""
        answer = self.preparation.prepare(dra.NodePrepareResourcesRequest(claims=[_message(one) for one in names]))
        for one in answer.claims.values():
            if one.error:
                raise ValueError(one.error)
        return {
            name: [id_ for one in answer.claims[f"uid-{name}"].devices for id_ in one.cdi_device_ids] for name in names
        }

    def unprepare(self, *names: str) -> None:
        """Raises `ValueError` for the first error."""
        request = dra.NodeUnprepareResourcesRequest(claims=[_message(one) for one in names])
        for one in self.preparation.unprepare(request).claims.values():
            if one.error:
                raise ValueError(one.error)

    def specs(self) -> dict[str, Obj]:
        """By name of the file."""
        return {path.name: json.loads(path.read_text()) for path in self.cdi.glob("*.json")}


def _ids(answer: dra.NodePrepareResourceResponse) -> list[str]:
    return [id_ for one in answer.devices for id_ in one.cdi_device_ids]


def _message(name: str) -> dra.Claim:
    return dra.Claim(namespace="team", name=name, uid=f"uid-{name}")
