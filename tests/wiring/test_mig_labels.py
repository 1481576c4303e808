"""The controller of a node's MIG label, composed as `shoal agent mig run` does it, on a simulated machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from build.pod_resources_server import PodResourcesServer
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.agent.mig.label_controller import CONFIG, STATE, MigLabelController
from shoal.agent.mig.layout_change import NodeMig
from shoal.agent.parts import Stop
from shoal.client.http.access import Access
from shoal.client.kind import NODES, PODS
from shoal.devices.dcgm_holders import ClaimedDevice, ContainerHolding
from shoal.units.errors import TemporaryError
from shoal.wiring.gpu_driver import open_mig_patiently
from shoal.wiring.mig_labels import MigFollowing, follow_mig_label, mig_controller

NOWHERE = Access("https://127.0.0.1:1", "nowhere")
FILE = "version: v1\nmig-configs:\n  mine: [{devices: [0], mig-enabled: true, mig-devices: {2g.20gb: 2}}]\n"


def composed(
    cluster: SmallCluster, file: Path | None, machine: str = "dgx-h100", socket: Path = Path("/nowhere/kubelet.sock")
) -> tuple[MigLabelController, NodeMig]:
    driver, control = open_mig_patiently(machine)
    mig = NodeMig(driver, control)
    following = MigFollowing(NOWHERE, "n", "gpu-operator", file, pod_resources=socket, fake=machine)
    return mig_controller(cluster.api, cluster.clock, driver, mig, following), mig


async def state(cluster: SmallCluster, controller: MigLabelController, config: str) -> str:
    await cluster.patch(NODES, "n", {"metadata": {"labels": {CONFIG: config}}})
    await controller.follow()
    return str((await cluster.get(NODES, "n"))["metadata"]["labels"][STATE])


@virtual
async def test_layouts_come_from_the_file_which_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "layouts.yaml"
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n"}})
        controller, mig = composed(cluster, file)
        assert await state(cluster, controller, "mine") == "failed"
        file.write_text(FILE)
        assert await state(cluster, controller, "all-disabled") == "failed"
        assert await state(cluster, controller, "mine") == "success"
        assert [one.profile for one in mig.present()[0].instances] == ["2g.20gb", "2g.20gb"]
        file.write_text("version: v2")
        assert await state(cluster, controller, "other") == "failed"


@virtual
async def test_without_a_file_the_generated_layouts_are_known(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n"}})
        controller, mig = composed(cluster, None)
        assert await state(cluster, controller, "all-7g.80gb") == "success"
        assert all(len(one.instances) == 1 for one in mig.present())


@pytest.fixture
def socket() -> Iterator[Path]:
    """Paths of sockets are short."""
    with TemporaryDirectory(prefix="pods-") as folder:
        yield Path(folder) / "kubelet.sock"


async def with_claim(cluster: SmallCluster) -> None:
    await cluster.create(NODES, {"metadata": {"name": "n", "labels": {CONFIG: "all-7g.80gb"}}})
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    spec = {"nodeName": "n", "containers": [{"name": "main", "image": "x"}], "resourceClaims": claims}
    await cluster.create(PODS, {"metadata": {"name": "user"}, "spec": spec})


@virtual
async def test_an_instance_that_the_kubelet_lists_in_a_claim_is_not_destroyed(tmp_path: Path, socket: Path) -> None:
    server = PodResourcesServer()
    claimed = ClaimedDevice("gpu", "default", "gpu.nvidia.com", "n", "gpu-3-mig-1g10gb-19-2")
    server.holdings = (ContainerHolding("user", "default", "main", claimed=(claimed,)),)
    async with small_cluster(tmp_path) as cluster:
        await with_claim(cluster)
        controller, mig = composed(cluster, None, "dgx-h100[mig=all-1g.10gb]", socket)
        with server.served(socket):
            await controller.follow()
        assert (await cluster.get(NODES, "n"))["metadata"]["labels"][STATE] == "failed"
        assert [len(one.instances) for one in mig.present()] == [7] * 8


@virtual
async def test_nothing_is_changed_while_a_pod_has_a_claim_and_the_kubelet_does_not_list_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await with_claim(cluster)
        controller, mig = composed(cluster, None, "dgx-h100[mig=all-1g.10gb]")
        with pytest.raises(TemporaryError, match="the kubelet does not list the devices of pods"):
            await controller.follow()
        assert STATE not in (await cluster.get(NODES, "n"))["metadata"]["labels"]
        assert [len(one.instances) for one in mig.present()] == [7] * 8


def test_the_part_ends_when_it_is_stopped_also_without_a_server() -> None:
    stop, left = Stop(), list[str]()
    following = MigFollowing(NOWHERE, "n", "gpu-operator", fake="dgx-h100")
    running = threading.Thread(target=lambda: left.extend(follow_mig_label(following, stop)), daemon=True)
    running.start()
    stop.set()
    running.join(30)
    assert not running.is_alive()
    assert left == []
