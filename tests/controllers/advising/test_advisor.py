"""The advisor beside a control plane: an Event for each object and fault, at the right objects, never two of one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from build.foreign_kinds import established
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, RESOURCE_FLAVORS
from shoal.client.item import Item, Obj
from shoal.client.kind import CONFIG_MAPS, DEPLOYMENTS, EVENTS, JOBS, NODES, PODS, Kind
from shoal.client.partial_informer import PartialInformer
from shoal.client.port import Api
from shoal.client.refusals import BusyError
from shoal.client.served import Served
from shoal.controllers.advising.advisor import COMPONENT, RESOLVED, advisor
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.wiring.foreign_kinds import provide_foreign


class OnceBusy(InsideApi):
    """The first Event is turned away."""

    def __init__(self, cluster: SmallCluster) -> None:
        super().__init__(cluster.plane, Actor("admin", ("system:masters", "system:authenticated")), "test")
        self.is_busy = True

    async def create(self, kind: Kind, obj: Obj) -> Item:
        if kind == EVENTS and self.is_busy:
            self.is_busy = False
            raise BusyError("too many requests")
        return await super().create(kind, obj)


def start(cluster: SmallCluster, api: Api | None = None) -> None:
    context = cluster.context("shoal-advisor", api)
    served = Served(context)
    cluster.tasks += [asyncio.ensure_future(advisor(context, served).run()), asyncio.ensure_future(served.run())]


def gpu_pods(**fields: Any) -> Obj:
    """A template whose pods see devices that are not theirs."""
    variables = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    limits = {"nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "x:1", "env": variables, "resources": {"limits": limits}}
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container], **fields}}


async def said(cluster: SmallCluster, name: str) -> list[str]:
    return [one["reason"] for one in await cluster.events(name) if one["reportingComponent"] == COMPONENT]


@virtual
async def test_one_fault_is_one_warning_on_the_object_that_a_user_wrote(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start(cluster)
        await cluster.create(
            JOBS, {"metadata": {"name": "train"}, "spec": {"template": gpu_pods(restartPolicy="Never")}}
        )
        await cluster.pass_time(5)
        (event,) = await cluster.events("train")
        assert (event["type"], event["reason"], event["count"]) == ("Warning", "VisibleDevicesByHand", 1)
        assert event["involvedObject"]["kind"] == "Job"
        assert event["message"].startswith("spec.template.spec.containers[0].env[0]: NVIDIA_VISIBLE_DEVICES=all")


@virtual
async def test_an_event_that_a_busy_server_rejected_is_written_later(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start(cluster, OnceBusy(cluster))
        await cluster.create(
            JOBS, {"metadata": {"name": "train"}, "spec": {"template": gpu_pods(restartPolicy="Never")}}
        )
        await cluster.pass_time(15)
        assert await said(cluster, "train") == ["VisibleDevicesByHand"]


@virtual
async def test_objects_created_by_other_objects_are_skipped(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start(cluster)
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": True}
        await cluster.create(PODS, {**gpu_pods(), "metadata": {"name": "made", "ownerReferences": [owner]}})
        await cluster.create(PODS, {**gpu_pods(), "metadata": {"name": "written"}})
        await cluster.pass_time(5)
        assert await said(cluster, "written") == ["VisibleDevicesByHand"]
        assert await said(cluster, "made") == []


@virtual
async def test_a_second_advisor_repeats_nothing_and_checks_changed_objects_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start(cluster)
        spec = {"selector": {"matchLabels": {"app": "x"}}, "template": gpu_pods()}
        await cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
        await cluster.pass_time(5)
        start(cluster)
        await cluster.pass_time(5)
        assert await said(cluster, "web") == ["VisibleDevicesByHand"]
        await cluster.create(NODES, {"metadata": {"name": "n"}})
        body = {"spec": {"template": {"spec": {"nodeSelector": {"accelerator": "nvidia"}}}}}
        await cluster.patch(DEPLOYMENTS, "web", body)
        await cluster.pass_time(5)
        assert sorted(await said(cluster, "web")) == ["UnknownNodeLabel", "VisibleDevicesByHand"]


@virtual
async def test_a_warning_that_has_expired_comes_back_while_the_fault_lasts(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start(cluster)
        text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "s"}, "data": {"c": text}})
        await cluster.pass_time(5)
        (event,) = await cluster.events("s")
        await cluster.delete(EVENTS, event["metadata"]["name"])
        await cluster.pass_time(5)
        assert await said(cluster, "s") == []
        await cluster.pass_time(1000)
        assert await said(cluster, "s") == ["NotAScheduler"]
        await cluster.patch(CONFIG_MAPS, "s", {"data": {"c": ""}})
        await cluster.delete(EVENTS, (await cluster.events("s"))[0]["metadata"]["name"])
        await cluster.pass_time(2000)
        assert await said(cluster, "s") == []


@virtual
async def test_a_fault_resolved_by_another_object_becomes_a_normal_event_and_a_warning_when_it_returns(
    tmp_path: Path,
) -> None:
    async with small_cluster(tmp_path) as cluster:
        start(cluster)
        labels = {"accelerator": "nvidia"}
        await cluster.create(NODES, {"metadata": {"name": "other"}})
        template = gpu_pods(nodeSelector=labels)
        del template["spec"]["containers"][0]["env"]
        spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
        await cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})

        async def told() -> list[tuple[str, bool]]:
            return [(one["type"], one["message"].startswith(RESOLVED)) for one in await cluster.events("web")]

        await cluster.pass_time(5)
        assert await told() == [("Warning", False)]
        await cluster.create(NODES, {"metadata": {"name": "n", "labels": labels}})
        await cluster.pass_time(65)
        assert await told() == [("Normal", True)]
        await cluster.delete(NODES, "n")
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 2}})
        await cluster.pass_time(5)
        assert await told() == [("Warning", False)]


@virtual
async def test_a_change_outside_the_spec_does_not_delay_the_next_check(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start(cluster)
        await provide_foreign(cluster.api)
        await established(cluster)
        labels = {"gpu": "h100"}
        await cluster.create(NODES, {"metadata": {"name": "n", "labels": labels}})
        await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "f"}, "spec": {"nodeLabels": labels}})
        await cluster.pass_time(30)
        await cluster.patch(RESOURCE_FLAVORS, "f", {"metadata": {"finalizers": ["kueue.x-k8s.io/resource-in-use"]}})
        taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
        await cluster.patch(NODES, "n", {"spec": {"taints": [taint]}})
        await cluster.pass_time(65)
        assert any("nvidia.com/gpu=present" in one["message"] for one in await cluster.events("f"))


@virtual
async def test_kinds_that_are_installed_later_are_checked_from_then_on(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start(cluster)
        await cluster.pass_time(5)
        await provide_foreign(cluster.api)
        await established(cluster)
        await cluster.create(CLUSTER_QUEUES, {"metadata": {"name": "closed"}, "spec": {}})
        await cluster.pass_time(60)
        assert await said(cluster, "closed") == ["NoNamespaceSelector"]


@virtual
async def test_only_config_maps_with_a_scheduler_configuration_are_kept_whole(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        maps = PartialInformer(cluster.api, CONFIG_MAPS, cluster.clock, cluster.draw, (b"KubeSchedulerConfiguration",))
        cluster.tasks.append(asyncio.ensure_future(maps.run()))
        start(cluster)
        text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "told"}, "data": {"config.yaml": text}})
        for number in range(5):
            await cluster.create(CONFIG_MAPS, {"metadata": {"name": f"m{number}"}, "data": {"x": "y" * 100_000}})
        await cluster.pass_time(5)
        kept = {item.name: item for item in maps}
        assert {*kept} >= {"told", *(f"m{number}" for number in range(5))}
        assert sum(len(item.data) for item in maps) < 3000
        assert kept["told"].obj()["data"] == {"config.yaml": text}
        assert await said(cluster, "told") == ["NotAScheduler"]
        assert cluster.informers.known(CONFIG_MAPS) is None, "nobody follows all of them"
