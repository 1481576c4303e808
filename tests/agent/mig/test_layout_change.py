"""The layout of this node is read and changed step by step, and restored where a step fails."""

from __future__ import annotations

import pytest

from build.fake_nvml import FakeGpu, FakeNvml
from build.fake_nvml_mig import INSUFFICIENT_RESOURCES
from shoal.agent.mig.held_devices import DevicesInUse
from shoal.agent.mig.layout_change import Change, NodeMig
from shoal.agent.mig.nvml_mig import NvmlMigControl
from shoal.agent.nvml import NvmlDriver
from shoal.devices.mig_assertions import layout_matches
from shoal.devices.mig_layout_checks import Problem
from shoal.devices.mig_layouts import MigSpec, Specs
from shoal.devices.mig_plan import planned

BALANCED = (MigSpec(enabled=True, counts=(("1g.10gb", 2), ("2g.20gb", 1), ("3g.40gb", 1))),)
SEVEN = (MigSpec(enabled=True, counts=(("1g.10gb", 7),)),)
CHANGES = (
    "nvmlDeviceSetMigMode",
    "nvmlDeviceCreateGpuInstanceWithPlacement",
    "nvmlGpuInstanceDestroy",
    "nvmlGpuInstanceCreateComputeInstance",
    "nvmlComputeInstanceDestroy",
)


class KilledError(BaseException):
    """The process ends here, as by SIGKILL."""


class Killable(FakeNvml):
    """Ends the process at the change of this number, before or after it is made."""

    def __init__(self, gpus: list[FakeGpu], at: int = -1, *, after: bool = False) -> None:
        super().__init__(gpus)
        self.at, self.after, self.count = at, after, 0

    def __getattribute__(self, name: str) -> object:
        found = super().__getattribute__(name)
        if name not in CHANGES:
            return found

        def call(*given: object) -> object:
            number, self.count = self.count, self.count + 1
            if number == self.at and not self.after:
                raise KilledError
            result = found(*given)
            if number == self.at:
                raise KilledError
            return result

        return call


def node_of(library: FakeNvml) -> NodeMig:
    return NodeMig(NvmlDriver(library), NvmlMigControl(library))


def changed(library: FakeNvml, specs: Specs) -> Change:
    node = node_of(library)
    plan = planned(specs, node.present())
    assert not isinstance(plan, Problem), plan
    return node.apply(plan)


def is_applied(library: FakeNvml, specs: Specs) -> bool:
    return layout_matches(specs, [one.gpu for one in node_of(library).present()])


def test_a_layout_is_applied_to_all_gpus_and_a_second_time_changes_nothing() -> None:
    library = FakeNvml([FakeGpu(0), FakeGpu(1)])
    assert changed(library, BALANCED).failure == ""
    assert is_applied(library, BALANCED)
    assert changed(library, BALANCED) == Change(())


def test_a_gpu_that_needs_a_reset_is_named_and_others_are_changed() -> None:
    library = FakeNvml([FakeGpu(0, needs_reset=True), FakeGpu(1)])
    change = changed(library, BALANCED)
    assert change.resets == (0,)
    assert [len(one.instances) for one in node_of(library).present()] == [0, 4]


def test_the_former_layout_is_restored_if_a_step_fails() -> None:
    gpus = [FakeGpu(0)]
    library = FakeNvml(gpus)
    changed(library, SEVEN)
    plan = planned(BALANCED, node_of(library).present())
    assert not isinstance(plan, Problem)
    gpus[0].refuse_profile = "3g.40gb"
    change = node_of(library).apply(plan)
    assert change.failure == "GPU 0: cannot create 3g.40gb at slice 4: the GPU has not enough free slices"
    assert change.undone
    assert is_applied(library, SEVEN)


def test_a_former_layout_that_cannot_be_restored_is_reported() -> None:
    library = FakeNvml([FakeGpu(0)])
    changed(library, SEVEN)
    library.fail("nvmlDeviceCreateGpuInstanceWithPlacement", INSUFFICIENT_RESOURCES)
    change = changed(library, BALANCED)
    assert change.failure
    assert not change.undone


def test_processes_and_pods_use_instances() -> None:
    gpus = [FakeGpu(0)]
    library = FakeNvml(gpus)
    changed(library, SEVEN)
    first, second = gpus[0].instances[:2]
    gpus[0].processes.append((77, 0, first.number))
    node = node_of(library)
    node.held = DevicesInUse(frozenset({second.uuid}))
    (present,) = node.present()
    assert present.used == {first.number, second.number}
    assert isinstance(planned((MigSpec(enabled=True, counts=(("7g.80gb", 1),)),), node.present()), Problem)
    node.held = DevicesInUse(resources=frozenset({"nvidia.com/mig-1g.10gb"}))
    assert len(node.present()[0].used) == 7


def test_a_process_of_an_unknown_instance_uses_all_of_them() -> None:
    gpus = [FakeGpu(0)]
    library = FakeNvml(gpus)
    changed(library, SEVEN)
    gpus[0].processes.append((77, 0, 0xFFFFFFFF))
    (present,) = node_of(library).present()
    assert len(present.used) == 7


@pytest.mark.parametrize("after", [False, True])
def test_a_process_that_is_killed_at_any_change_continues_to_the_layout(*, after: bool) -> None:
    at = 0
    while True:
        gpus = [FakeGpu(0), FakeGpu(1)]
        assert changed(FakeNvml(gpus), SEVEN).failure == ""
        killed = Killable(gpus, at, after=after)
        try:
            changed(killed, BALANCED)
        except KilledError:
            at += 1
        else:
            break
        changed(FakeNvml(gpus), BALANCED)
        assert is_applied(FakeNvml(gpus), BALANCED), at
        assert all(one.compute for gpu in gpus for one in gpu.instances)
    assert at > 20
