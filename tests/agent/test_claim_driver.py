"""The driver of claims against a kubelet's real interface and an API server: registration, claims, restarts, taints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, cast

import pytest

from build.claimable import NODE, claimable_driver
from build.fake_dra_kubelet import FakeDraKubelet, until
from build.gpu_pods import device_manager
from build.prepared_claims import allocated
from build.small_clusters import SmallCluster, small_cluster
from shoal.agent.dra.claim_driver import ClaimDriver, ClaimFolders
from shoal.agent.dra.claim_sharing import ClaimSharing
from shoal.agent.dra.health_stream import HealthStream
from shoal.agent.dra.node_devices import ClaimableDevices
from shoal.agent.health.watcher import HealthTimes, HealthWatcher
from shoal.agent.protos import drahealth_pb2 as drahealth
from shoal.client.kind import NAMESPACES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from shoal.devices.cdi_devices import CdiInput, DriverFiles
from shoal.devices.claimable_devices import ClaimedHealth
from shoal.units.errors import TemporaryError

Obj = dict[str, Any]


class ClaimNode:
    """A machine with its driver of claims. The folder is short because paths of sockets are."""

    def __init__(self, folder: Path, cluster: SmallCluster) -> None:
        self.cluster, self.now_s = cluster, 0.0
        self.manager = device_manager("dgx-h100")
        driver = claimable_driver(self.manager, lambda: self.now_s)
        self.health = HealthWatcher(driver, lambda: self.now_s, times=HealthTimes(wait_s=0))
        self.folders = ClaimFolders(folder / "plugins", folder / "registry", folder / "cdi")
        self.kubelet = FakeDraKubelet(self.folders.registry)
        self.devices = ClaimableDevices(driver, self.health.health)
        self.driver = ClaimDriver(
            NODE,
            self.folders,
            self.devices,
            lambda gpus: CdiInput(tuple(gpus), "1.2", DriverFiles()),
            ClaimSharing(None, "", lambda *_: None),
        )
        self.health.listen(lambda _: self.driver.wake())
        self.health.read()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self.driver.run(self.cluster.api, interval_s=0.05))
        try:
            await until(self.is_published)
            await asyncio.to_thread(self.kubelet.look)
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            self.kubelet.stop()

    async def is_published(self) -> bool:
        return bool(await self.cluster.all(RESOURCE_SLICES)) and any(self.folders.registry.glob("*.sock"))

    async def taints(self) -> list[str]:
        (piece,) = await self.cluster.all(RESOURCE_SLICES)
        return [taint["key"] for device in piece["spec"]["devices"] for taint in device.get("taints") or ()]

    async def claim(self, name: str, *devices: str) -> Obj:
        """A claim in the cluster, allocated as a scheduler does it."""
        given = allocated(name, *devices)
        body = {"metadata": {"name": name, "namespace": "team"}, "spec": given["spec"]}
        made = await self.cluster.create(RESOURCE_CLAIMS, body)
        made["status"] = given["status"]
        return (await self.cluster.api.update(RESOURCE_CLAIMS, made, "status")).obj()


@asynccontextmanager
async def claim_node() -> AsyncIterator[ClaimNode]:
    with TemporaryDirectory(prefix="dra-") as name:
        async with small_cluster(Path(name) / "data") as cluster:
            await cluster.create(NODES, {"metadata": {"name": NODE}})
            await cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
            yield ClaimNode(Path(name), cluster)


def test_the_kubelet_finds_the_driver_and_prepares_a_claim() -> None:
    async def story() -> None:
        async with claim_node() as node, node.running():
            assert node.kubelet.drivers == {"gpu.nvidia.com": node.folders.plugins / "gpu.nvidia.com/dra.sock"}
            claim = await node.claim("a", "gpu-1", "gpu-2")
            uid = claim["metadata"]["uid"]
            answer = (await asyncio.to_thread(node.kubelet.prepare, claim))[uid]
            assert not answer.error
            assert [(one.request_names[0], one.pool_name, one.device_name) for one in answer.devices] == [
                ("gpu", NODE, "gpu-1"),
                ("gpu", NODE, "gpu-2"),
            ]
            assert list(answer.devices[0].cdi_device_ids) == [f"k8s.gpu.nvidia.com/claim={uid}-gpu-1"]
            assert (node.folders.cdi / f"k8s.gpu.nvidia.com-claim_{uid}.json").exists()
            assert await asyncio.to_thread(node.kubelet.unprepare, claim) == {uid: ""}
            assert not any(node.folders.cdi.iterdir())

    asyncio.run(story())


def test_several_claims_have_answers_of_their_own() -> None:
    async def story() -> None:
        async with claim_node() as node, node.running():
            first, second = await node.claim("a", "gpu-1"), await node.claim("b", "gpu-1")
            gone = {"metadata": {"name": "gone", "namespace": "team", "uid": "u"}}
            answers = await asyncio.to_thread(node.kubelet.prepare, first, second, gone)
            assert not answers[first["metadata"]["uid"]].error
            assert "device gpu-1 is prepared for ResourceClaim team/a" in answers[second["metadata"]["uid"]].error
            assert answers["u"].error == "ResourceClaim team/gone: there is no such claim in the cluster"

    asyncio.run(story())


def test_a_prepared_claim_stays_prepared_over_a_restart_and_the_sockets_end_with_the_driver() -> None:
    async def story() -> None:
        async with claim_node() as node:
            async with node.running():
                claim = await node.claim("a", "gpu-1")
                await asyncio.to_thread(node.kubelet.prepare, claim)
            assert not any(node.folders.registry.iterdir())
            before = await node.cluster.all(RESOURCE_SLICES)
            async with node.running():
                other = await node.claim("b", "gpu-1")
                (answer,) = (await asyncio.to_thread(node.kubelet.prepare, other)).values()
                assert "is prepared for ResourceClaim team/a" in answer.error
                await asyncio.to_thread(node.kubelet.unprepare, claim)
                (answer,) = (await asyncio.to_thread(node.kubelet.prepare, other)).values()
                assert not answer.error
            assert await node.cluster.all(RESOURCE_SLICES) == before

    asyncio.run(story())


def test_sockets_that_a_kubelet_removed_are_made_again() -> None:
    async def story() -> None:
        async with claim_node() as node, node.running():
            registration = node.folders.registry / "gpu.nvidia.com-reg.sock"
            registration.unlink()

            async def is_back() -> bool:
                return registration.exists()

            await until(is_back)
            await asyncio.to_thread(node.kubelet.look)
            assert node.kubelet.drivers

    asyncio.run(story())


@pytest.mark.parametrize(("xid", "keys"), [(79, ["gpu.nvidia.com/gpu-lost"]), (119, ["gpu.nvidia.com/xid"])])
def test_an_unhealthy_gpu_is_tainted_until_it_recovers(xid: int, keys: list[str]) -> None:
    async def story() -> None:
        async with claim_node() as node, node.running():
            assert await node.taints() == []
            node.manager.fail(3, xid)
            node.health.next_xid()
            node.health.read()

            async def is_tainted() -> bool:
                return {*keys} <= {*await node.taints()}

            await until(is_tainted)
            # A GPU that is lost is still listed.
            (piece,) = await node.cluster.all(RESOURCE_SLICES)
            assert len(piece["spec"]["devices"]) == 8
            node.manager.mend(3)
            node.now_s += 120.0
            node.health.read()

            async def is_clean() -> bool:
                return not await node.taints()

            await until(is_clean)

    asyncio.run(story())


def test_a_folder_that_is_no_folder_is_reported_once_and_slices_are_published(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with claim_node() as node:
            node.folders.registry.write_text("")
            task = asyncio.ensure_future(node.driver.run(node.cluster.api, interval_s=0.0))

            async def is_published() -> bool:
                return bool(await node.cluster.all(RESOURCE_SLICES))

            await until(is_published)
            node.folders.registry.unlink()

            async def is_served() -> bool:
                return any(node.folders.registry.glob("*.sock"))

            await until(is_served)
            task.cancel()
            await asyncio.wait((task,))

    asyncio.run(story())
    said = [
        message for message in caplog.messages if message.startswith("the kubelet cannot reach the driver of claims")
    ]
    assert len(said) == 1


def test_the_kubelet_follows_the_health_of_the_devices() -> None:
    async def story() -> None:
        async with claim_node() as node, node.running():
            stream = node.kubelet.health()

            async def next_unhealthy() -> dict[str, str]:
                answer = await asyncio.to_thread(next, stream)
                assert {(one.device.pool_name, one.device.device_name) for one in answer.devices} == {
                    (NODE, f"gpu-{number}") for number in range(8)
                }
                assert all(one.last_updated_time and one.health_check_timeout_seconds for one in answer.devices)
                unhealthy = (one for one in answer.devices if one.health == drahealth.UNHEALTHY)
                return {one.device.device_name: one.message for one in unhealthy}

            assert await next_unhealthy() == {}
            node.manager.fail(3, 119)
            node.health.next_xid()
            # On a slow machine all devices are sent again meanwhile.
            while not (found := await next_unhealthy()):
                continue
            assert set(found) == {"gpu-3"}
            assert found["gpu-3"].startswith("Xid 119: ")
            node.manager.mend(3)
            node.now_s += 120.0
            node.health.read()
            while await next_unhealthy():
                continue
            stream.cancel()

    asyncio.run(story())


def test_a_driver_that_does_not_respond_makes_the_health_unknown() -> None:
    class Silent:
        answers: ClassVar[list[bool]] = [True, False]

        def health(self) -> tuple[ClaimedHealth, ...]:
            if not self.answers.pop(0):
                raise TemporaryError("the driver does not respond", 1.0)
            return (ClaimedHealth("gpu-0", is_healthy=True),)

    class Active:
        def add_callback(self, _: Any) -> bool:
            return True

        def is_active(self) -> bool:
            return True

    stream = HealthStream(NODE, Silent(), lambda: 5.0, interval_s=0.0).watch(cast("Any", Active()))
    first, second = next(stream), next(stream)
    assert [one.health for one in first.devices] == [drahealth.HEALTHY]
    (device,) = second.devices
    assert (device.health, device.message) == (drahealth.UNKNOWN, "the driver does not respond")
    assert (device.last_updated_time, device.device.device_name) == (5, "gpu-0")


def test_a_driver_that_is_ended_while_it_is_woken_ends() -> None:
    async def story() -> None:
        async with claim_node() as node:
            task = asyncio.ensure_future(node.driver.run(node.cluster.api, interval_s=60.0))
            await until(node.is_published)
            # The pass that follows the start is over when the loop has nothing else to do.
            await asyncio.to_thread(node.kubelet.look)
            node.driver.wake()
            await asyncio.sleep(0)
            task.cancel()
            done, _ = await asyncio.wait((task,), timeout=20.0)
            assert done
            node.kubelet.stop()

    asyncio.run(story())
