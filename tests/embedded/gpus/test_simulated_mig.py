"""Changes of MIG on simulated GPUs keep the contract of the driver's."""

from __future__ import annotations

import json

import pytest

from build.gpu_pods import device_manager, gpu_pod, granted
from build.mig_control_contract import SMALL, MigControlContract, MigNode, fails
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.embedded.gpus.simulated_mig import SimulatedMigControl


def node_of(manager: DeviceManager) -> MigNode:
    driver = SimulatedDriver(manager, DcgmExporter(manager, booted_s=0.0), lambda: 1.0)

    def use(gpu: int, instance: int | None) -> None:
        cut = next((one for one in manager.gpus[gpu].cuts if one.instance == instance), None)
        resource = cut.profile.resource if cut is not None else "nvidia.com/gpu"
        ids = {"main": {resource: [cut.uuid if cut is not None else manager.machine.gpus[gpu].uuid]}}
        granted(manager.admit(gpu_pod(f"user-{gpu}", 1, resource=resource, devices=json.dumps(ids))))

    return MigNode(SimulatedMigControl(manager), driver, use)


class TestSimulatedGpus(MigControlContract):
    @pytest.fixture
    def node(self) -> MigNode:
        return node_of(device_manager("dgx-h100"))


def test_a_new_instance_is_advertised_at_once() -> None:
    manager = device_manager("dgx-h100")
    node = node_of(manager)
    node.control.set_mode(node.uuid(), enabled=True)
    node.control.create(node.uuid(), SMALL, 0, (1,))
    found = {name: one.capacity for name, one in manager.resources().items()}
    assert found == {"nvidia.com/gpu": 7, "nvidia.com/mig-1g.10gb": 1}


def test_a_lost_gpu_and_one_without_mig_are_refused() -> None:
    manager = device_manager("dgx-h100")
    node = node_of(manager)
    uuid = node.uuid()
    manager.fail(0, 79)
    fails("lost", lambda: node.control.set_mode(uuid, enabled=True))
    plain = node_of(device_manager("g6.12xlarge"))
    fails("not-supported", lambda: plain.control.set_mode(plain.uuid(), enabled=True))
