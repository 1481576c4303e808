"""An adoption of Kueue: what it changes, that each interruption can be completed, and that a revert restores all."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from build.adopted_clusters import (
    CONTROLLER,
    LEASE,
    MUTATING,
    SPACE,
    VALIDATING,
    PlayedControllers,
    add_kueue,
    add_pod,
    deployment,
    webhook,
)
from build.depth import examples
from build.killed_writes import KilledApi, KilledError
from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.virtual_time import virtual
from build.whole_clusters import whole_cluster
from shoal.client.kind import API_SERVICES, CONFIG_MAPS, DEFINITIONS, DEPLOYMENTS, LEASES, NAMESPACES, PODS
from shoal.client.port import Api, Patch
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.install.adoption.plan import AdoptionPlan, adoption_plan, record_of
from shoal.install.adoption.projects import KAI, KUEUE, VOLCANO, AdoptedProject
from shoal.install.adoption.record import (
    ADOPTED,
    REVERTING,
    AdoptionRecord,
    SavedDefinition,
    SavedDeployment,
    SavedHook,
)
from shoal.install.release import FIELD_MANAGER, Release
from shoal.install.values.reading import read_values
from shoal.units.errors import UserError
from shoal.wiring.installation.adopting import Adopter, find_adoption
from shoal.wiring.installation.adoption_reader import AdoptionReader
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.stage_waits import NotReadyError

Obj = dict[str, Any]
RELEASE = Release("shoal", "shoal-system", "0.2.0")


def _as_installer(cluster: SmallCluster) -> Api:
    return InsideApi(cluster.plane, ADMIN, FIELD_MANAGER)


def _adopter(cluster: SmallCluster, api: Api, timeout_s: float = 120.0) -> tuple[ClusterWriter, Adopter]:
    writer = ClusterWriter(api, cluster.clock)
    return writer, Adopter(writer, RELEASE, lambda _: None, timeout_s)


async def _adopt(cluster: SmallCluster, api: Api | None = None, timeout_s: float = 120.0) -> None:
    writer, adopter = _adopter(cluster, api or _as_installer(cluster), timeout_s)
    facts = await AdoptionReader(writer).read(KUEUE, SPACE, RELEASE.namespace)
    assert adoption_plan(KUEUE, SPACE, RELEASE, facts, read_values([])).errors == []
    await adopter.adopt(KUEUE, record_of(KUEUE, SPACE, facts))


async def _planned(cluster: SmallCluster) -> AdoptionPlan:
    writer, _ = _adopter(cluster, _as_installer(cluster))
    facts = await AdoptionReader(writer).read(KUEUE, SPACE, RELEASE.namespace)
    return adoption_plan(KUEUE, SPACE, RELEASE, facts, read_values([]))


async def _revert(cluster: SmallCluster, api: Api | None = None) -> None:
    writer, adopter = _adopter(cluster, api or _as_installer(cluster))
    record = await find_adoption(writer, KUEUE.name, RELEASE.namespace)
    if record is not None:
        await adopter.revert(KUEUE, record)


async def _state(cluster: SmallCluster) -> dict[str, Obj]:
    """All objects, with the data of the Lease that Shoal reads."""
    found = await whole_cluster(cluster.api)
    lease = await cluster.get(LEASES, LEASE, SPACE)
    return {**found, "lease": {"labels": lease["metadata"].get("labels")}}


async def _prepared(cluster: SmallCluster, controller: str = CONTROLLER) -> None:
    cluster.start(PlayedControllers)
    await cluster.create(NAMESPACES, {"metadata": {"name": RELEASE.namespace}}, "")
    await add_kueue(cluster, controller=controller)


@virtual
async def test_an_adoption_stops_the_controllers_and_a_revert_restores_each_object(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _prepared(cluster)
        before = await _state(cluster)
        await _adopt(cluster)
        assert (await cluster.get(DEPLOYMENTS, CONTROLLER, SPACE))["spec"]["replicas"] == 0
        assert (await cluster.get(DEPLOYMENTS, "kueueviz", SPACE))["spec"]["replicas"] == 1
        hooks = (await cluster.get(VALIDATING, "kueue-validating", ""))["webhooks"]
        assert [one.get("matchConditions") for one in hooks] == [
            [{"name": "shoal.dev/adopted", "expression": "false"}],
            None,
        ]
        assert (await cluster.get(MUTATING, "kueue-mutating", ""))["webhooks"][0]["matchConditions"]
        definition = await cluster.get(DEFINITIONS, "workloads.kueue.x-k8s.io", "")
        assert definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"] == "shoal-webhook"
        services = {one["metadata"]["name"] for one in await cluster.all(API_SERVICES)}
        assert "v1beta1.visibility.kueue.x-k8s.io" not in services
        assert not (await cluster.get(LEASES, LEASE, SPACE))["spec"].get("holderIdentity")
        await _revert(cluster)
        assert await _state(cluster) == before


@virtual
async def test_a_controller_with_the_name_of_a_helm_release_is_stopped_and_started_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _prepared(cluster, f"prod-{CONTROLLER}")
        before = await _state(cluster)
        await _adopt(cluster)
        replicas = {one["metadata"]["name"]: one["spec"]["replicas"] for one in await cluster.all(DEPLOYMENTS)}
        assert replicas == {f"prod-{CONTROLLER}": 0, "kueueviz": 1}
        await _adopt(cluster)
        record = await find_adoption(_adopter(cluster, cluster.api)[0], KUEUE.name, RELEASE.namespace)
        assert record is not None
        assert record.deployments == (SavedDeployment(SPACE, f"prod-{CONTROLLER}", 2),)
        await _revert(cluster)
        assert await _state(cluster) == before


@virtual
async def test_a_configuration_with_the_name_of_a_helm_release_is_read_and_must_be_copied(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _prepared(cluster, f"prod-{CONTROLLER}")
        data = (await cluster.get(CONFIG_MAPS, "kueue-manager-config", SPACE))["data"]
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "prod-kueue-manager-config"}, "data": data}, SPACE)
        volumes = [{"name": "manager-config", "configMap": {"name": "prod-kueue-manager-config"}}]
        patch = {"spec": {"template": {"spec": {"volumes": volumes}}}}
        await cluster.patch(DEPLOYMENTS, f"prod-{CONTROLLER}", patch, namespace=SPACE)
        assert (await _planned(cluster)).errors == []
        await cluster.delete(CONFIG_MAPS, "kueue-manager-config", namespace=SPACE)
        plan = await _planned(cluster)
        assert "manageJobsWithoutQueueName: true" in plan.settings
        (error,) = plan.errors
        assert str(error) == (
            "the settings of Kueue are in the ConfigMap kueue-system/prod-kueue-manager-config, and Shoal reads "
            "kueue-manager-config; copy them: kubectl create configmap -n kueue-system kueue-manager-config "
            '--from-literal=controller_manager_config.yaml="$(kubectl get configmap -n kueue-system '
            "prod-kueue-manager-config -o jsonpath='{.data.controller_manager_config\\.yaml}')\""
        )


@virtual
async def test_a_second_adoption_writes_nothing_and_keeps_the_saved_state(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _prepared(cluster)
        await _adopt(cluster)
        before = [
            (item.key, item.version)
            for kind in (DEPLOYMENTS, DEFINITIONS, CONFIG_MAPS, VALIDATING, MUTATING)
            for item in (await cluster.api.list(kind)).items
        ]
        await _adopt(cluster)
        after = [
            (item.key, item.version)
            for kind in (DEPLOYMENTS, DEFINITIONS, CONFIG_MAPS, VALIDATING, MUTATING)
            for item in (await cluster.api.list(kind)).items
        ]
        assert after == before
        record = await find_adoption(ClusterWriter(cluster.api, cluster.clock), "kueue", RELEASE.namespace)
        assert record is not None
        assert (record.state, [one.replicas for one in record.deployments]) == (ADOPTED, [2])


async def _number_of_writes(folder: Path, *, reverts: bool) -> tuple[int, dict[str, Obj]]:
    async with small_cluster(folder) as cluster:
        await _prepared(cluster)
        if reverts:
            await _adopt(cluster)
        counted = KilledApi(_as_installer(cluster))
        await (_revert if reverts else _adopt)(cluster, counted)
        return counted.writes, await _state(cluster)


def _some(writes: int, *, is_done: bool) -> range:
    """Every sixteenth write; all of them with SHOAL_DEEP=16."""
    step = max(1, 16 // examples(1))
    return range(2 + (7 if is_done and step > 1 else 0), writes + 1, step) if step > 1 else range(1, writes + 1)


@pytest.mark.slow
@virtual
@pytest.mark.parametrize("is_done", [False, True])
async def test_an_adoption_killed_at_any_write_is_completed_and_can_be_reverted(tmp_path: Path, is_done: bool) -> None:
    writes, expected = await _number_of_writes(tmp_path, reverts=False)
    assert writes > 12
    for at in _some(writes, is_done=is_done):
        async with small_cluster(tmp_path) as cluster:
            await _prepared(cluster)
            before = await _state(cluster)
            with pytest.raises(KilledError):
                await _adopt(cluster, KilledApi(_as_installer(cluster), at, is_done=is_done))
            await _adopt(cluster)
            assert await _state(cluster) == expected, f"killed at write {at}"
            await _revert(cluster)
            assert await _state(cluster) == before, f"killed at write {at}"


@pytest.mark.slow
@virtual
@pytest.mark.parametrize("is_done", [False, True])
async def test_a_half_done_adoption_is_reverted_and_a_killed_revert_completed(tmp_path: Path, is_done: bool) -> None:
    writes, expected = await _number_of_writes(tmp_path, reverts=True)
    assert writes > 12
    for at in _some(writes, is_done=is_done):
        async with small_cluster(tmp_path) as cluster:
            await _prepared(cluster)
            with pytest.raises(KilledError):
                await _adopt(cluster, KilledApi(_as_installer(cluster), min(at, 14), is_done=is_done))
            await _revert(cluster)
            await _adopt(cluster)
            with pytest.raises(KilledError):
                await _revert(cluster, KilledApi(_as_installer(cluster), at, is_done=is_done))
            await _revert(cluster)
            assert await _state(cluster) == expected, f"killed at write {at}"


@virtual
async def test_a_controller_whose_pods_do_not_end_is_named_and_nothing_else_is_taken(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _prepared(cluster)
        await add_pod(cluster, "manager-1", SPACE, {"control-plane": CONTROLLER})
        with pytest.raises(
            NotReadyError, match="pod kueue-system/manager-1 of the Deployment kueue-controller-manager"
        ):
            await _adopt(cluster, timeout_s=5.0)
        holder = (await cluster.get(LEASES, LEASE, SPACE))["spec"]["holderIdentity"]
        assert holder == "kueue-1"
        await cluster.delete(PODS, "manager-1", namespace=SPACE)
        await _adopt(cluster)


@virtual
async def test_webhooks_are_not_called_before_a_returned_controller_is_ready(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": RELEASE.namespace}}, "")
        await add_kueue(cluster)
        writer, adopter = _adopter(cluster, _as_installer(cluster), 60.0)
        facts = await AdoptionReader(writer).read(KUEUE, SPACE, RELEASE.namespace)
        for name in record_of(KUEUE, SPACE, facts).definitions:
            await cluster.patch(
                DEFINITIONS, name.name, {"spec": {"conversion": {"strategy": "None", "webhook": None}}}, namespace=""
            )
        await _adopt(cluster)
        record = await find_adoption(writer, "kueue", RELEASE.namespace)
        assert record is not None
        with pytest.raises(NotReadyError, match="Deployment kueue-system/kueue-controller-manager has no ready pod"):
            await adopter.revert(KUEUE, record)
        assert (await cluster.get(MUTATING, "kueue-mutating", ""))["webhooks"][0]["matchConditions"]
        spec = (await cluster.get(LEASES, LEASE, SPACE))["spec"]
        assert spec["holderIdentity"] == "shoal-install"
        latest = await find_adoption(writer, "kueue", RELEASE.namespace)
        assert latest is not None
        assert latest.state == REVERTING


@virtual
async def test_a_record_in_another_namespace_is_not_read(tmp_path: Path) -> None:
    """A tenant may write ConfigMaps in a namespace of its own, with any labels."""
    async with small_cluster(tmp_path) as cluster:
        await _prepared(cluster)
        labels = RELEASE.labels("adoption")
        for namespace in ("default", RELEASE.namespace):
            meta = {"name": "shoal-adoption-kueue", "labels": labels}
            await cluster.create(CONFIG_MAPS, {"metadata": meta, "data": {"record.json": "{}"}}, namespace)
        writer = ClusterWriter(cluster.api, cluster.clock)
        assert await find_adoption(writer, "kueue", "kube-system") is None
        with pytest.raises(UserError, match="is not the record of an adoption"):
            await find_adoption(writer, "kueue", RELEASE.namespace)


@virtual
async def test_a_lease_of_a_leader_that_works_is_not_taken_by_a_revert(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _prepared(cluster)
        await _adopt(cluster)
        await cluster.api.patch(LEASES, SPACE, LEASE, Patch("merge", {"spec": {"holderIdentity": "kueue-2"}}))
        await _revert(cluster)
        assert (await cluster.get(LEASES, LEASE, SPACE))["spec"]["holderIdentity"] == "kueue-2"


@virtual
async def test_the_lease_of_a_leader_whose_pod_runs_is_not_cleared_by_an_adoption(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _prepared(cluster)
        await add_pod(cluster, "batch-kueue-1", SPACE, {"app": "another-deployment"})
        renewed = (cluster.clock.now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": "batch-kueue-1_0a1b", "renewTime": renewed}
        await cluster.api.patch(LEASES, SPACE, LEASE, Patch("merge", {"spec": spec}))
        with pytest.raises(NotReadyError, match="pod kueue-system/batch-kueue-1 still holds the Lease c1f6bfd2"):
            await _adopt(cluster, timeout_s=5.0)
        assert (await cluster.get(LEASES, LEASE, SPACE))["spec"]["holderIdentity"] == "batch-kueue-1_0a1b"
        await cluster.delete(PODS, "batch-kueue-1", namespace=SPACE)
        await _adopt(cluster)
        assert not (await cluster.get(LEASES, LEASE, SPACE))["spec"].get("holderIdentity")


@virtual
async def test_a_controller_with_another_name_that_decides_stops_the_plan(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _prepared(cluster)
        await cluster.delete(DEPLOYMENTS, CONTROLLER, namespace=SPACE)
        renewed = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        await cluster.api.patch(LEASES, SPACE, LEASE, Patch("merge", {"spec": {"renewTime": renewed}}))
        writer, _ = _adopter(cluster, _as_installer(cluster))
        facts = await AdoptionReader(writer).read(KUEUE, SPACE, RELEASE.namespace)
        words = [one.what for one in adoption_plan(KUEUE, SPACE, RELEASE, facts, read_values([])).errors]
        assert "Kueue runs: kueue-1 holds the Lease kueue-system/c1f6bfd2.kueue.x-k8s.io" in words[-1]


@virtual
async def test_a_conversion_by_the_project_in_the_namespace_of_the_release_is_not_shoals(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_kueue(cluster)
        writer = ClusterWriter(_as_installer(cluster), cluster.clock)
        adopter = Adopter(writer, Release("shoal", SPACE, "0.2.0"), lambda _: None, 3.0)
        facts = await AdoptionReader(writer).read(KUEUE, SPACE, SPACE)
        with pytest.raises(NotReadyError, match="Shoal's webhook does not convert"):
            await adopter.adopt(KUEUE, record_of(KUEUE, SPACE, facts))


_CONTROLLERS = {
    "volcano": ("volcano-scheduler", "volcano-controllers", "volcano-admission"),
    "kai": ("kai-operator", "kai-scheduler-default", "queue-controller", "binder"),
}


@virtual
@pytest.mark.parametrize("project", [VOLCANO, KAI], ids=lambda one: one.name)
async def test_volcano_and_kai_are_stopped_in_order_and_return_as_they_were(
    tmp_path: Path, project: AdoptedProject
) -> None:
    async with small_cluster(tmp_path) as cluster:
        cluster.start(PlayedControllers)
        space, names = project.namespace, _CONTROLLERS[project.name]
        for name in (RELEASE.namespace, space):
            await cluster.create(NAMESPACES, {"metadata": {"name": name}}, "")
        for at, name in enumerate(names):
            await cluster.create(DEPLOYMENTS, deployment(name, at + 1), space)
        hooks = [webhook("validate.example.com", space, group="example.com")]
        await cluster.create(VALIDATING, {"metadata": {"name": "others"}, "webhooks": hooks}, "")
        await cluster.pass_time(2)
        before = await whole_cluster(cluster.api)
        said: list[str] = []
        writer = ClusterWriter(_as_installer(cluster), cluster.clock)
        adopter = Adopter(writer, RELEASE, said.append, 120.0)
        facts = await AdoptionReader(writer).read(project, space, RELEASE.namespace)
        record = await adopter.adopt(project, record_of(project, space, facts))
        assert [one.split("/")[1] for one in said[1:]] == [f"{name}: stopped" for name in names]
        assert {one["spec"]["replicas"] for one in await cluster.all(DEPLOYMENTS, space)} == {0}
        await adopter.revert(project, record)
        assert await whole_cluster(cluster.api) == before
        # The Lease that held Shoal back did not exist before.
        assert [one["metadata"]["name"] for one in await cluster.all(LEASES, space)] == []


@virtual
async def test_a_revert_ends_where_the_project_was_removed_meanwhile(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": RELEASE.namespace}}, "")
        gone = AdoptionRecord(
            "kueue",
            "gone",
            deployments=(SavedDeployment("gone", CONTROLLER, 2),),
            hooks=(SavedHook("ValidatingWebhookConfiguration", "gone", ("a",)),),
            definitions=(SavedDefinition("gones.example.com", {"strategy": "None"}),),
        )
        writer, adopter = _adopter(cluster, _as_installer(cluster))
        await adopter.revert(KUEUE, gone)
        assert await find_adoption(writer, "kueue", RELEASE.namespace) is None
