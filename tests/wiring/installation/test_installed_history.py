"""A release with a history: it records with the rights that are installed, and its volume outlives upgrades and, unless
the user agrees, the removal."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from build.live_schedulers import add_node, pod
from build.ruled_clusters import ruled_cluster
from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.upgraded_releases import QUICK, RELEASE, upgraded
from build.virtual_time import virtual
from build.whole_clusters import whole_cluster
from shoal.cli.run import run_choice
from shoal.cli.run_files import read_run_files
from shoal.client.kind import DEPLOYMENTS, NAMESPACES, PODS, STORAGE_CLASSES, VOLUME_CLAIMS
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.controllers.namespaces.controller import namespace_controller
from shoal.embedded.controllers.volumes.classes import local_class
from shoal.embedded.controllers.volumes.controller import claim_protection
from shoal.install.manifest import manifest
from shoal.install.release import FIELD_MANAGER
from shoal.install.values.reading import ValuesText, read_values
from shoal.store.history.history import read_history
from shoal.wiring.installation.applying import Installer, Patience
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.preparing import InstallRequest, prepare
from shoal.wiring.installation.removal import RemovalRequest, Remover
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.shoal import start_shoal

ON = "history.enabled=true"
VALUES = read_values([ValuesText("--set", one) for one in (*QUICK, ON)])


@virtual
async def test_the_part_history_records_with_the_rights_of_its_account_and_is_refused_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    user = f"system:serviceaccount:{RELEASE.namespace}:shoal-history"
    async with ruled_cluster(tmp_path) as ruled:
        cluster = ruled.cluster
        await cluster.create(NAMESPACES, {"metadata": {"name": RELEASE.namespace}}, "")
        permissions = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
        await ruled.apply(
            [
                one
                for one in manifest(RELEASE, VALUES)
                if one["kind"] in permissions and one["metadata"]["name"].startswith("shoal-history")
            ]
        )
        choice = structs.replace(run_choice(read_run_files([])), controllers=("history",), history=folder)
        api = ruled.way_in(user)
        tasks = ProcessTasks(api, api, cluster.clock)
        await start_shoal(tasks, lambda _: api, choice)
        tasks.start("caches", tasks.informers.run)
        await add_node(cluster, "n1", gpus=8)
        await cluster.create(PODS, pod("train", gpus=2, nodeName="n1"))
        await cluster.patch(PODS, "train", {"status": {"phase": "Running"}}, "status")
        await cluster.pass_time(60)
        await tasks.end()
        now_ms = round(cluster.clock.seconds() * 1000)
        history = read_history(folder)
        records = history.records(0, now_ms)
        history.close()
        assert [(one.holder.pod, len(one.devices)) for one in records.holdings] == [("train", 2)]
        assert ruled.refused == []


@virtual
async def test_an_upgrade_that_leaves_the_history_out_and_the_way_back_keep_its_claim(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        cluster = tried.cluster
        await cluster.create(STORAGE_CLASSES, local_class())
        await tried.installer.apply(await tried.prepared(*QUICK))
        await tried.installer.apply(await tried.prepared(*QUICK, ON))
        claim = await cluster.get(VOLUME_CLAIMS, "shoal-history", RELEASE.namespace)
        await tried.installer.roll_back(await tried.record())
        assert await _deployments(cluster) == {"shoal", "shoal-operator"}
        assert "PersistentVolumeClaim" in {one.kind for one in (await tried.record()).inventory}
        await tried.installer.apply(await tried.prepared(*QUICK, ON))
        await tried.installer.apply(await tried.prepared(*QUICK, "history.enabled=false"))
        assert await _deployments(cluster) == {"shoal", "shoal-operator"}
        kept = await cluster.get(VOLUME_CLAIMS, "shoal-history", RELEASE.namespace)
        assert kept["metadata"]["uid"] == claim["metadata"]["uid"]


async def _deployments(cluster: SmallCluster) -> set[str]:
    return {one["metadata"]["name"] for one in await cluster.all(DEPLOYMENTS)}


@virtual
async def test_the_removal_keeps_the_claim_with_its_namespace_until_the_user_agrees(tmp_path: Path) -> None:
    # The last one lets a claim go that no pod uses.
    async with small_cluster(tmp_path, [namespace_controller, claim_protection]) as cluster:
        await cluster.create(STORAGE_CLASSES, local_class())
        before = await whole_cluster(cluster.api)
        writer = ClusterWriter(InsideApi(cluster.plane, ADMIN, FIELD_MANAGER), cluster.clock)
        prepared = await prepare(writer, InstallRequest(RELEASE, VALUES, "v1.36.0"))
        assert prepared.errors == []
        await Installer(writer, lambda _: None, Patience(waits=False)).apply(prepared)
        told: list[str] = []
        remover = Remover(writer, told.append)
        kept = await remover.remove(RemovalRequest(RELEASE), await remover.plan(RELEASE))
        assert [str(one) for one in kept] == ["PersistentVolumeClaim gpu-operator/shoal-history"]
        assert told[-1] == (
            "namespace: gpu-operator stays, because it has other objects: PersistentVolumeClaim shoal-history"
        )
        left = {key for key in await whole_cluster(cluster.api) if key not in before}
        assert len([key for key in left if "shoal-history" in str(key)]) == 1
        asked: list[str] = []

        def agrees(name: str) -> bool:
            asked.append(name)
            return True

        request = RemovalRequest(RELEASE, deletes_volume=agrees)
        assert await remover.remove(request, await remover.plan(RELEASE)) == []
        assert asked == ["shoal-history"]
        assert await whole_cluster(cluster.api) == before
