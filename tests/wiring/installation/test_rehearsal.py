"""A rehearsed upgrade: what it would change or why it would fail, while the cluster stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.killed_writes import KilledApi
from build.small_clusters import SmallCluster
from build.upgraded_releases import Upgraded, upgraded, with_older_definitions
from build.virtual_time import virtual
from build.whole_clusters import whole_cluster
from shoal.client.kind import DEFINITIONS, PODS, Kind
from shoal.embedded.apiserver.foreign.converting import kueue_definitions
from shoal.install.release import Release
from shoal.install.values.reading import ValuesText, read_values
from shoal.wiring.installation.applying import Installer
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.preparing import InstallRequest, prepare
from shoal.wiring.installation.rehearsal import Rehearsal, rehearse
from shoal.wiring.installation.release_store import installed_record

Obj = dict[str, Any]
RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", is_namespaced=False)
OLD, NEW = Release("prod", "gpu-operator", "0.1.4"), Release("prod", "gpu-operator", "0.2.0")
VALUES = ("crds.projects={gpu-operator,kueue}", "controllers={scheduler}", "smokeTest.enabled=false")
FLAVORS = Kind("kueue.x-k8s.io", "v1beta1", "resourceflavors", "ResourceFlavor", is_namespaced=False)


async def _install_old(tried: Upgraded) -> None:
    await tried.installer.apply(with_older_definitions(await tried.prepared(*VALUES, release=OLD)))
    await tried.cluster.create(FLAVORS, {"metadata": {"name": "a100"}, "spec": {"nodeLabels": {"gpu": "a100"}}})
    await tried.cluster.create(RUNTIME_CLASSES, {"metadata": {"name": "nvidia"}, "handler": "nvidia"})
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    await tried.cluster.create(
        PODS,
        {"metadata": {"name": "p"}, "spec": {"runtimeClassName": "nvidia", "nodeName": "n", "containers": [container]}},
    )


async def _rehearsed(cluster: SmallCluster, writer: ClusterWriter, *sets: str) -> Rehearsal:
    async def act(copy: ClusterWriter, installer: Installer) -> None:
        record = await installed_record(copy)
        values = read_values([ValuesText("--set", one) for one in sets], record.current.values)
        prepared = await prepare(copy, InstallRequest(NEW, values, "v1.36.0"))
        assert prepared.errors == []
        await installer.upgrade(prepared, rolls_back=False)

    return await rehearse(writer, cluster.clock, OLD, act)


@virtual
async def test_it_says_what_would_change_and_writes_nothing_to_the_cluster(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await _install_old(tried)
        before = await whole_cluster(tried.cluster.api)
        counted = KilledApi(tried.writer.api)
        found = await _rehearsed(tried.cluster, ClusterWriter(counted, tried.cluster.clock), "replicas=1")
        assert (counted.writes, await whole_cluster(tried.cluster.api) == before) == (0, True)
        assert (found.failures, found.not_copied) == ((), ())
        assert (found.copied["nodes"], found.copied["pods"], found.copied["resourceflavors"]) == (1, 1, 1)
        signs = {(one.sign, one.address.kind, one.address.name) for one in found.changes}
        assert {("~", "Deployment", "shoal"), ("-", "PodDisruptionBudget", "shoal")} <= signs
        assert ("~", "CustomResourceDefinition", "resourceflavors.kueue.x-k8s.io") in signs
        assert not {"Pod", "Node", "ResourceFlavor"} & {kind for _, kind, _ in signs}
        assert [one.name for one in found.replaced] == ["shoal", "shoal-operator"]
        assert "definitions: 1 object of resourceflavors.kueue.x-k8s.io stored in the version v1beta2" in found.told


@virtual
async def test_definitions_that_belong_to_others_stay_as_they_are(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        definition = next(kueue_definitions())
        await tried.cluster.create(DEFINITIONS, definition)
        await _install_old(tried)
        found = await _rehearsed(tried.cluster, tried.writer, "replicas=1")
        assert definition["metadata"]["name"] not in {one.address.name for one in found.changes}


@virtual
async def test_what_the_server_refuses_is_a_failure_that_names_it(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await _install_old(tried)
        found = await _rehearsed(tried.cluster, tried.writer, "labels.team=not valid!")
        assert len(found.failures) == 1
        assert "metadata.labels" in found.failures[0]


@virtual
async def test_a_way_back_is_rehearsed_as_well(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await tried.installer.apply(await tried.prepared(*VALUES, release=OLD))
        kept = (await tried.record()).current.values
        await tried.installer.upgrade(await tried.prepared("replicas=1", kept=kept, release=NEW), rolls_back=True)

        async def act(copy: ClusterWriter, installer: Installer) -> None:
            await installer.roll_back(await installed_record(copy))

        found = await rehearse(tried.writer, tried.cluster.clock, NEW, act)
        assert found.failures == ()
        deployment = next(
            one for one in found.changes if one.address.name == "shoal" and one.address.kind == "Deployment"
        )
        assert ("spec.replicas", 1, 2) in [tuple(field) for field in deployment.fields]
        assert await tried.image() == "shoal:0.2.0"
