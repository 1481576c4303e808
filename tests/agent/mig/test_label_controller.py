"""The label of the Node becomes the layout of its GPUs, with the clients stopped before and started again after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.fake_nvml import GPU_IS_LOST, UNKNOWN, FakeGpu, FakeNvml
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.agent.mig.held_devices import DevicesInUse, claimed_devices, held_devices
from shoal.agent.mig.label_controller import CONFIG, STATE, MigLabelController, MigSettings
from shoal.agent.mig.layout_change import NodeMig
from shoal.agent.mig.nvml_mig import NvmlMigControl, NvmlMigLibrary
from shoal.agent.nvml import NvmlDriver
from shoal.agent.nvml_library import NvmlLibrary
from shoal.client.item import Obj
from shoal.client.kind import NAMESPACES, NODES, PODS
from shoal.client.port import Deletion
from shoal.devices.dcgm_holders import ClaimedDevice, ContainerHolding
from shoal.devices.gpu_clients import PAUSED
from shoal.devices.port import MigInstance
from shoal.units.errors import TemporaryError

PLUGIN, EXPORTER, GFD = (
    f"nvidia.com/gpu.deploy.{name}" for name in ("device-plugin", "dcgm-exporter", "gpu-feature-discovery")
)
CLAIMS: Obj = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
LABELS = {PLUGIN: "true", EXPORTER: "false"}
OPERATOR = "gpu-operator"


class KilledError(BaseException):
    """The process ends here, as by SIGKILL."""


class KillingApi:
    """Ends the process at the call of this number, before or after the server has done it."""

    def __init__(self, api: Any, at: int, *, is_done: bool) -> None:
        self._api, self._at, self._is_done, self._count = api, at, is_done, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._api, name)

        async def call(*given: Any, **named: Any) -> Any:
            number, self._count = self._count, self._count + 1
            if number == self._at and not self._is_done:
                raise KilledError
            result = await found(*given, **named)
            if number == self._at:
                raise KilledError
            return result

        return call if name in ("get", "list", "patch", "delete") else found


class ClockSetBack:
    """Its time is set back by an hour each time that it is asked for."""

    def __init__(self, clock: Any) -> None:
        self._clock, self._back_s = clock, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def seconds(self) -> float:
        self._back_s += 3600.0
        return float(self._clock.seconds() - self._back_s)


def pod(name: str, app: str = "", **container: Any) -> Obj:
    labels = {"app": app} if app else {}
    spec = {"nodeName": "n", "containers": [{"name": "main", "image": "x", **container}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


class Site:
    """A Node, its GPUs, and the controllers that run on it one after another."""

    def __init__(self, cluster: SmallCluster, gpus: list[FakeGpu]) -> None:
        self.cluster, self.gpus = cluster, gpus
        self.library = FakeNvml(gpus)

    def controller(self, api: Any = None, clock: Any = None, **settings: Any) -> MigLabelController:
        mig = NodeMig(NvmlDriver(self.library), NvmlMigControl(self.library))
        return MigLabelController(
            api or self.cluster.api, clock or self.cluster.clock, mig, MigSettings("n", is_inline=True, **settings)
        )

    async def label(self, config: str) -> None:
        await self.cluster.patch(NODES, "n", {"metadata": {"labels": {CONFIG: config}}})

    async def labels(self) -> dict[str, str]:
        found: dict[str, str] = (await self.cluster.get(NODES, "n"))["metadata"]["labels"]
        return found


@asynccontextmanager
async def site(folder: Path, gpus: list[FakeGpu] | None = None) -> AsyncIterator[Site]:
    async with small_cluster(folder) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": OPERATOR}})
        await cluster.create(NODES, {"metadata": {"name": "n", "labels": LABELS}})
        yield Site(cluster, gpus or [FakeGpu(0), FakeGpu(1)])


def profiles(gpus: list[FakeGpu]) -> list[list[str]]:
    return [sorted(one.profile for one in gpu.instances) for gpu in gpus]


BALANCED = ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]


@virtual
async def test_the_layout_of_the_label_is_applied(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        told: list[int] = []
        controller = one.controller(changed=lambda: told.append(1))
        await controller.follow()
        assert STATE not in await one.labels()
        await one.label("all-balanced")
        await controller.follow()
        assert profiles(one.gpus) == [BALANCED, BALANCED]
        labels = await one.labels()
        assert (labels[STATE], labels[PLUGIN], labels[EXPORTER]) == ("success", "true", "false")
        assert GFD not in labels
        assert told == [1]


@virtual
async def test_clients_leave_the_node_before_the_change(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        await one.cluster.create(PODS, pod("plugin", "nvidia-device-plugin-daemonset"), OPERATOR)
        await one.cluster.create(PODS, pod("validator", "nvidia-cuda-validator"), OPERATOR)
        await one.label("all-balanced")
        task = asyncio.ensure_future(one.controller().follow())
        await one.cluster.pass_time(10.0)
        labels = await one.labels()
        assert (labels[STATE], labels[PLUGIN], labels[EXPORTER]) == ("pending", PAUSED, "false")
        assert not any(gpu.is_mig for gpu in one.gpus)
        await one.cluster.api.delete(PODS, OPERATOR, "plugin", Deletion(grace_s=0))
        await one.cluster.pass_time(5.0)
        await task
        assert (await one.labels())[STATE] == "success"
        (validator,) = await one.cluster.all(PODS, OPERATOR)
        assert "deletionTimestamp" in validator["metadata"]


@virtual
async def test_clients_that_stay_fail_the_change_and_are_restored(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        await one.cluster.create(PODS, pod("exporter", "nvidia-dcgm-exporter"), OPERATOR)
        await one.label("all-balanced")
        await one.controller().follow()
        labels = await one.labels()
        assert (labels[STATE], labels[PLUGIN]) == ("failed", "true")
        assert not any(gpu.is_mig for gpu in one.gpus)


@virtual
async def test_a_client_that_a_user_switches_off_during_the_change_stays_off(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        await one.cluster.create(PODS, pod("plugin", "nvidia-device-plugin-daemonset"), OPERATOR)
        await one.label("all-balanced")
        task = asyncio.ensure_future(one.controller().follow())
        await one.cluster.pass_time(10.0)
        await one.cluster.patch(NODES, "n", {"metadata": {"labels": {PLUGIN: "false"}}})
        await one.cluster.api.delete(PODS, OPERATOR, "plugin", Deletion(grace_s=0))
        await one.cluster.pass_time(5.0)
        await task
        labels = await one.labels()
        assert (labels[STATE], labels[PLUGIN]) == ("success", "false")


@virtual
async def test_a_layout_that_is_chosen_during_the_change_does_not_get_the_state_of_the_former_one(
    tmp_path: Path,
) -> None:
    async with site(tmp_path) as one:
        controller = one.controller()
        await one.cluster.create(PODS, pod("plugin", "nvidia-device-plugin-daemonset"), OPERATOR)
        await one.label("all-balanced")
        task = asyncio.ensure_future(controller.follow())
        await one.cluster.pass_time(10.0)
        await one.label("nothing")
        await one.cluster.api.delete(PODS, OPERATOR, "plugin", Deletion(grace_s=0))
        await one.cluster.pass_time(5.0)
        await task
        labels = await one.labels()
        assert (labels[STATE], labels[PLUGIN]) == ("pending", PAUSED)
        await controller.follow()
        labels = await one.labels()
        assert (labels[STATE], labels[PLUGIN]) == ("failed", "true")


class RacingApi:
    """Another client changes the Node just before each of the first patches."""

    def __init__(self, cluster: SmallCluster, count: int) -> None:
        self._cluster, self._left = cluster, count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster.api, name)

    async def patch(self, *given: Any, **named: Any) -> Any:
        if self._left:
            self._left -= 1
            await self._cluster.patch(NODES, "n", {"metadata": {"labels": {PLUGIN: "false", "n": str(self._left)}}})
        return await self._cluster.api.patch(*given, **named)


@virtual
async def test_a_label_that_is_set_between_reading_and_writing_the_node_is_kept(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        await one.label("all-balanced")
        await one.controller(RacingApi(one.cluster, 2)).follow()
        labels = await one.labels()
        assert (labels[STATE], labels[PLUGIN]) == ("success", "false")


@virtual
async def test_a_clock_that_is_set_back_does_not_prolong_the_wait_for_clients(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        await one.cluster.create(PODS, pod("exporter", "nvidia-dcgm-exporter"), OPERATOR)
        await one.label("all-balanced")
        controller = one.controller(clock=ClockSetBack(one.cluster.clock))
        task = asyncio.ensure_future(controller.follow())
        await one.cluster.pass_time(400.0)
        assert task.done()
        assert (await one.labels())[STATE] == "failed"


@virtual
@pytest.mark.parametrize("config", ["nothing", "all-1g.5gb"])
async def test_an_unknown_layout_fails_and_stops_no_client(tmp_path: Path, config: str) -> None:
    async with site(tmp_path) as one:
        await one.cluster.create(PODS, pod("plugin", "nvidia-device-plugin-daemonset"), OPERATOR)
        await one.label(config)
        await one.controller().follow()
        assert (await one.labels())[STATE] == "failed"
        assert len(await one.cluster.all(PODS, OPERATOR)) == 1


@virtual
async def test_an_instance_of_a_running_pod_is_not_destroyed(tmp_path: Path) -> None:
    async with site(tmp_path, [FakeGpu(0)]) as one:
        controller = one.controller()
        await one.label("all-1g.10gb")
        await controller.follow()
        await one.cluster.create(PODS, pod("user", resources={"limits": {"nvidia.com/mig-1g.10gb": "1"}}))
        await one.label("all-7g.80gb")
        await controller.follow()
        assert (await one.labels())[STATE] == "failed"
        assert profiles(one.gpus) == [["1g.10gb"] * 7]


@virtual
async def test_an_instance_of_a_pod_that_started_while_clients_left_is_not_destroyed(tmp_path: Path) -> None:
    async with site(tmp_path, [FakeGpu(0)]) as one:
        controller = one.controller()
        await one.label("all-1g.10gb")
        await controller.follow()
        await one.cluster.create(PODS, pod("plugin", "nvidia-device-plugin-daemonset"), OPERATOR)
        await one.label("all-7g.80gb")
        task = asyncio.ensure_future(controller.follow())
        await one.cluster.pass_time(10.0)
        await one.cluster.create(PODS, pod("user", resources={"limits": {"nvidia.com/mig-1g.10gb": "1"}}))
        await one.cluster.api.delete(PODS, OPERATOR, "plugin", Deletion(grace_s=0))
        await one.cluster.pass_time(5.0)
        await task
        assert profiles(one.gpus) == [["1g.10gb"] * 7]
        assert (await one.labels())[STATE] == "failed"


@virtual
@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb.shared"]
)
async def test_a_pod_whose_devices_are_not_known_keeps_all_that_its_resource_can_be(
    tmp_path: Path, resource: str
) -> None:
    """With the strategy `single`, MIG instances are advertised as `nvidia.com/gpu`."""
    async with site(tmp_path) as one:
        controller = one.controller()
        await one.label("all-1g.10gb")
        await controller.follow()
        await one.cluster.create(PODS, pod("user", resources={"limits": {resource: "1"}}))
        await one.label("all-7g.80gb")
        await controller.follow()
        assert profiles(one.gpus) == [["1g.10gb"] * 7, ["1g.10gb"] * 7]


@virtual
async def test_an_instance_of_a_claim_is_not_destroyed(tmp_path: Path) -> None:
    async with site(tmp_path, [FakeGpu(0)]) as one:
        await one.label("all-1g.10gb")
        await one.controller().follow()
        await one.cluster.create(PODS, {**pod("user"), "spec": {**pod("user")["spec"], **CLAIMS}})
        await one.label("all-7g.80gb")
        instance = one.gpus[0].instances[3]
        await one.controller(claimed=lambda: frozenset({instance.uuid})).follow()
        assert profiles(one.gpus) == [["1g.10gb"] * 7]


@virtual
async def test_while_the_devices_of_claims_are_not_known_nothing_is_destroyed(tmp_path: Path) -> None:
    def silent() -> frozenset[str]:
        raise TemporaryError("the kubelet does not list the devices of pods", 1.0)

    async with site(tmp_path, [FakeGpu(0)]) as one:
        await one.label("all-1g.10gb")
        await one.controller().follow()
        await one.cluster.create(PODS, {**pod("user"), "spec": {**pod("user")["spec"], **CLAIMS}})
        await one.label("all-7g.80gb")
        with pytest.raises(TemporaryError):
            await one.controller(claimed=silent).follow()
        assert profiles(one.gpus) == [["1g.10gb"] * 7]
        await one.cluster.api.delete(PODS, "default", "user", Deletion(grace_s=0))
        await one.controller(claimed=silent).follow()
        assert profiles(one.gpus) == [["7g.80gb"]]


def test_devices_of_claims_are_those_of_this_node_and_driver() -> None:
    gpus = NvmlDriver(FakeNvml([FakeGpu(0, is_mig=True), FakeGpu(1)])).gpus().gpus
    instance = MigInstance("MIG-a", "1g.10gb", 9, 3, 1, 9856)
    divided = (msgspec.structs.replace(gpus[0], instances=(instance,)), gpus[1])
    devices = ("gpu-1", "gpu-0-mig-1g10gb-19-3", "gpu-7")
    claimed = tuple(ClaimedDevice("c", "team", "gpu.nvidia.com", "n", device) for device in devices)
    other = ClaimedDevice("c", "team", "example.com", "n", "gpu-0")
    holding = ContainerHolding("user", "team", "main", claimed=(*claimed, other))
    assert claimed_devices([holding], divided, "n") == {gpus[1].uuid, "MIG-a"}
    assert claimed_devices([holding], divided, "elsewhere") == set()


@virtual
async def test_whole_gpus_that_pods_hold_are_no_instances_of_other_gpus(tmp_path: Path) -> None:
    """Where only some GPUs are in MIG mode, the strategy is not `single`."""
    async with site(tmp_path) as one:
        controller = one.controller()
        one.gpus[1].is_mig = True
        one.gpus[1].instances = [one.gpus[1].new_instance(4, "1g.10gb", 0, 1, 9856)]
        one.gpus[1].instances[0].compute = [1]
        await one.cluster.create(PODS, pod("user", resources={"limits": {"nvidia.com/gpu": "1"}}))
        labels = {"shoal.dev/mig-layout": "dynamic", "shoal.dev/mig-devices": "1"}
        request = {"mig.shoal.dev/a": "1:7g.80gb@0"}
        await one.cluster.patch(NODES, "n", {"metadata": {"labels": labels, "annotations": request}})
        await controller.follow()
        assert profiles(one.gpus) == [[], ["7g.80gb"]]


@virtual
async def test_a_failed_change_restores_the_layout_and_the_clients(tmp_path: Path) -> None:
    async with site(tmp_path, [FakeGpu(0)]) as one:
        controller = one.controller()
        await one.label("all-1g.10gb")
        await controller.follow()
        one.gpus[0].refuse_profile = "3g.40gb"
        await one.label("all-3g.40gb")
        await controller.follow()
        labels = await one.labels()
        assert (labels[STATE], labels[PLUGIN]) == ("failed", "true")
        assert profiles(one.gpus) == [["1g.10gb"] * 7]


@virtual
async def test_a_mode_that_needs_a_reset_reboots_where_that_is_allowed(tmp_path: Path) -> None:
    async with site(tmp_path, [FakeGpu(0, needs_reset=True)]) as one:
        booted: list[str] = []
        await one.label("all-balanced")
        await one.controller(reboot=lambda: booted.append("now")).follow()
        labels = await one.labels()
        assert (booted, labels[STATE], labels[PLUGIN]) == (["now"], "rebooting", PAUSED)
        one.gpus[0].is_mig, one.gpus[0].pending_mode = True, None
        await one.controller(reboot=lambda: booted.append("again")).follow()
        labels = await one.labels()
        assert (booted, labels[STATE], labels[PLUGIN]) == (["now"], "success", "true")
        assert profiles(one.gpus) == [BALANCED]


@virtual
async def test_a_reboot_without_effect_is_not_repeated(tmp_path: Path) -> None:
    async with site(tmp_path, [FakeGpu(0, needs_reset=True)]) as one:
        booted: list[str] = []
        await one.label("all-balanced")
        for _ in range(2):
            await one.controller(reboot=lambda: booted.append("now")).follow()
        assert booted == ["now"]
        assert (await one.labels())[STATE] == "failed"
        await one.label("all-disabled")
        await one.controller().follow()
        assert (await one.labels())[STATE] == "success"


@virtual
async def test_without_a_reboot_a_needed_reset_is_a_failure(tmp_path: Path) -> None:
    async with site(tmp_path, [FakeGpu(0, needs_reset=True)]) as one:
        await one.label("all-balanced")
        await one.controller().follow()
        assert (await one.labels())[STATE] == "failed"


@virtual
@pytest.mark.parametrize("is_done", [False, True])
async def test_a_controller_that_is_killed_at_any_call_is_continued_by_the_next(tmp_path: Path, is_done: bool) -> None:
    at = 0
    is_killed = True
    while is_killed:
        async with site(tmp_path / str(at)) as one:
            await one.label("all-1g.10gb")
            await one.controller().follow()
            await one.cluster.create(PODS, pod("validator", "nvidia-cuda-validator"), OPERATOR)
            await one.label("all-balanced")
            try:
                await one.controller(KillingApi(one.cluster.api, at, is_done=is_done)).follow()
                is_killed = False
            except KilledError:
                await one.controller().follow()
            labels = await one.labels()
            assert (labels[STATE], labels[PLUGIN], labels[EXPORTER]) == ("success", "true", "false"), at
            assert profiles(one.gpus) == [BALANCED, BALANCED], at
        at += 1
    assert at > 10


@virtual
async def test_clients_are_started_again_if_the_label_was_removed_while_no_controller_ran(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        await one.cluster.create(PODS, pod("exporter", "nvidia-dcgm-exporter"), OPERATOR)
        await one.label("all-balanced")
        task = asyncio.ensure_future(one.controller().follow())
        await one.cluster.pass_time(10.0)
        task.cancel()
        assert (await one.labels())[PLUGIN] == PAUSED
        await one.cluster.patch(NODES, "n", {"metadata": {"labels": {CONFIG: None}}})
        await one.controller().follow()
        labels = await one.labels()
        assert (labels[PLUGIN], labels[EXPORTER], labels[STATE]) == ("true", "false", "failed")


@virtual
async def test_a_running_controller_follows_the_label(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        task = asyncio.ensure_future(one.controller().run())
        await one.cluster.pass_time(2.0)
        for config, state in (("all-balanced", "success"), ("nothing", "failed"), ("all-1g.10gb", "success")):
            await one.label(config)
            await one.cluster.pass_time(5.0)
            assert (await one.labels())[STATE] == state
        assert profiles(one.gpus)[0] == ["1g.10gb"] * 7
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@virtual
async def test_instances_that_the_scheduler_requests_are_created(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        controller = one.controller()
        await one.cluster.patch(NODES, "n", {"metadata": {"labels": {"shoal.dev/mig-layout": "dynamic"}}})
        await controller.follow()
        assert [gpu.is_mig for gpu in one.gpus] == [True, True]
        request = {"mig.shoal.dev/a": "1:2g.20gb@4"}
        await one.cluster.patch(NODES, "n", {"metadata": {"annotations": request}})
        await controller.follow()
        assert [(each.profile, each.start) for each in one.gpus[1].instances] == [("2g.20gb", 4)]
        assert STATE not in await one.labels()


@virtual
async def test_a_request_without_room_is_met_when_there_is_room(tmp_path: Path) -> None:
    async with site(tmp_path, [FakeGpu(0)]) as one:
        controller = one.controller()
        labels = {"shoal.dev/mig-layout": "dynamic"}
        request = {"mig.shoal.dev/a": "0:7g.80gb@0"}
        one.gpus[0].is_mig = True
        one.gpus[0].instances = [one.gpus[0].new_instance(4, "1g.10gb", 0, 1, 9856)]
        one.gpus[0].instances[0].compute = [1]
        one.gpus[0].processes = [(77, 0, 4)]
        await one.cluster.patch(NODES, "n", {"metadata": {"labels": labels, "annotations": request}})
        await controller.follow()
        assert profiles(one.gpus) == [["1g.10gb"]]
        one.gpus[0].processes = []
        await controller.follow()
        assert profiles(one.gpus) == [["7g.80gb"]]


FUNCTIONS = sorted(
    name
    for library in (NvmlLibrary, NvmlMigLibrary)
    for name in vars(library)
    if name.startswith("nvml") and name not in ("nvmlInit", "nvmlShutdown", "nvmlDeviceGetCount")
)


@virtual
@pytest.mark.parametrize("code", [GPU_IS_LOST, UNKNOWN])
@pytest.mark.parametrize("function", FUNCTIONS)
async def test_a_function_of_the_driver_that_fails_does_not_end_the_controller(
    tmp_path: Path, function: str, code: int
) -> None:
    async with site(tmp_path) as one:
        controller = one.controller()
        await one.label("all-1g.10gb")
        await controller.follow()
        one.library.fail(function, code, 0)
        await one.label("all-balanced")
        await controller.follow()
        labels = await one.labels()
        assert labels[STATE] in ("success", "failed")
        assert labels[PLUGIN] == "true"
        if labels[STATE] == "success":
            assert profiles(one.gpus)[1] == BALANCED
        one.library.fail(function, 0, 0)
        await one.controller().follow()
        assert profiles(one.gpus) == [BALANCED, BALANCED]
        assert (await one.labels())[STATE] == "success"


HELD: dict[str, tuple[Callable[[], Obj], DevicesInUse]] = {
    "nothing": (lambda: pod("a"), DevicesInUse()),
    "a resource whose devices are not known": (
        lambda: pod("a", resources={"limits": {"nvidia.com/mig-1g.10gb": "1"}}),
        DevicesInUse(resources=frozenset({"nvidia.com/mig-1g.10gb"})),
    ),
    "devices that the kubelet reports": (
        lambda: {
            **pod("a", resources={"limits": {"nvidia.com/gpu": "1"}}),
            "status": {
                "containerStatuses": [
                    {
                        "allocatedResourcesStatus": [
                            {"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-1::2"}]},
                        ]
                    }
                ]
            },
        },
        DevicesInUse(frozenset({"GPU-1"})),
    ),
    "nothing after the end": (
        lambda: {**pod("a", resources={"limits": {"nvidia.com/gpu": "1"}}), "status": {"phase": "Succeeded"}},
        DevicesInUse(),
    ),
}


@pytest.mark.parametrize("case", HELD)
def test_a_pod_holds(case: str) -> None:
    given, held = HELD[case]
    assert held_devices([given()]) == held


def test_a_pod_holds_the_devices_that_its_scheduler_chose() -> None:
    one = pod("a", resources={"limits": {"nvidia.com/mig-1g.10gb": "1"}})
    one["metadata"]["annotations"] = {"shoal.dev/devices": '{"main":{"nvidia.com/mig-1g.10gb":["MIG-1"]}}'}
    assert held_devices([one]) == DevicesInUse(frozenset({"MIG-1"}))
    one["metadata"]["annotations"] = {"shoal.dev/devices": '{"main":{"nvidia.com/mig-1g.10gb":["0:4"]}}'}
    assert held_devices([one]) == DevicesInUse(resources=frozenset({"nvidia.com/mig-1g.10gb"}))
