"""A driver whose calls do not return blocks no change of a MIG layout without end, and no second change begins."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from build.fake_nvml import FakeGpu, FakeNvml
from build.mig_control_contract import SMALL, MigControlContract, MigNode, fails
from build.small_clusters import small_cluster
from shoal.agent.mig.label_controller import CONFIG, STATE, MigLabelController, MigSettings
from shoal.agent.mig.layout_change import NodeMig
from shoal.agent.mig.nvml_mig import NvmlMigControl
from shoal.agent.mig.patient_control import PatientMigControl
from shoal.agent.nvml import NvmlDriver
from shoal.agent.patient_driver import PatientDriver
from shoal.client.kind import NODES
from shoal.devices.mig_port import MigChangeError, MigControl


class TestPatientControl(MigControlContract):
    @pytest.fixture
    def node(self) -> MigNode:
        gpus = [FakeGpu(0), FakeGpu(1)]
        library = FakeNvml(gpus)

        def use(gpu: int, instance: int | None) -> None:
            gpus[gpu].processes.append((77, 0, 0xFFFFFFFF if instance is None else instance))

        return MigNode(PatientMigControl(NvmlMigControl(library)), NvmlDriver(library), use)


class HangingControl:
    """One method of the inner control does not return while `hold` is not set."""

    def __init__(self, inner: MigControl, method: str) -> None:
        self._inner, self._method = inner, method
        self.hold, self.calls = threading.Event(), list[str]()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            self.calls.append(name)
            if name == self._method:
                assert self.hold.wait(30)
            return getattr(self._inner, name)(*given, **named)

        return call


def hanging(method: str) -> tuple[list[FakeGpu], NvmlDriver, HangingControl]:
    gpus = [FakeGpu(0, is_mig=True)]
    library = FakeNvml(gpus)
    driver = NvmlDriver(library)
    return gpus, driver, HangingControl(NvmlMigControl(library), method)


def test_a_call_that_does_not_return_is_a_failure_until_it_has_returned() -> None:
    gpus, driver, inner = hanging("create")
    control = PatientMigControl(inner, patience_s=0.05)
    uuid = driver.gpus().gpus[0].uuid
    assert "has not responded for 0.05 s" in fails("other", lambda: control.create(uuid, SMALL, 0, (1,)))
    assert "an earlier call" in fails("other", lambda: control.create(uuid, SMALL, 1, (1,)))
    assert inner.calls == ["create"]
    inner.hold.set()
    found: list[int] = []
    while not found:
        with suppress(MigChangeError):  # until the first call has returned
            found = [one.start for one in control.instances(uuid)]
    assert found == [0]
    assert [one.start for one in gpus[0].instances] == [0]


@pytest.mark.parametrize("method", ["set_mode", "create", "instances"])
def test_the_state_of_a_layout_is_failed_if_the_driver_hangs_during_its_change(tmp_path: Path, method: str) -> None:
    async def story() -> str:
        async with small_cluster(tmp_path) as cluster:
            await cluster.create(NODES, {"metadata": {"name": "n", "labels": {CONFIG: "all-1g.10gb"}}})
            gpus, driver, inner = hanging(method)
            gpus[0].is_mig = method != "set_mode"
            mig = NodeMig(PatientDriver(lambda: driver), PatientMigControl(inner, patience_s=0.05))
            controller = MigLabelController(cluster.api, cluster.clock, mig, MigSettings("n", is_inline=True))
            await controller.follow()
            inner.hold.set()
            return str((await cluster.get(NODES, "n"))["metadata"]["labels"][STATE])

    assert asyncio.run(story()) == "failed"
