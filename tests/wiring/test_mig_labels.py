"""The controller of a node's MIG label, composed as `shoal agent mig run` does it, on a simulated machine."""

from __future__ import annotations

from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.agent.mig.label_controller import CONFIG, STATE, MigLabelController
from shoal.agent.mig.layout_change import NodeMig
from shoal.client.http.access import Access
from shoal.client.kind import NODES
from shoal.wiring.gpu_driver import open_mig
from shoal.wiring.mig_labels import MigFollowing, mig_controller

FILE = "version: v1\nmig-configs:\n  mine: [{devices: [0], mig-enabled: true, mig-devices: {2g.20gb: 2}}]\n"


def composed(cluster: SmallCluster, file: Path | None) -> tuple[MigLabelController, NodeMig]:
    mig = NodeMig(*open_mig("dgx-h100"))
    access = Access("https://127.0.0.1:1", "nowhere")
    following = MigFollowing(access, "n", "gpu-operator", file, fake="dgx-h100")
    return mig_controller(cluster.api, cluster.clock, mig, following), mig


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
