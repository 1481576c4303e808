"""Pods that the scheduler places on a whole control plane in virtual time, whatever others do meanwhile."""

from __future__ import annotations

import random
from pathlib import Path

from build.cluster_laws import Laws
from build.live_schedulers import add_node, condition, is_bound, places, pod, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, PRIORITY_CLASSES, Kind
from shoal.client.port import Deletion
from shoal.client.refusals import BusyError, ForbiddenError
from shoal.client.write_through import WriteThroughApi
from shoal.embedded.scheduler.controller import default_scheduler

AT_ONCE = Deletion(grace_s=0)


async def bind(cluster: SmallCluster, name: str, node: str) -> None:
    """By somebody else."""
    body: Obj = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    await cluster.api.post(PODS, "default", name, "binding", body)


@virtual
async def test_a_pod_is_bound_and_an_event_says_where(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster)
        await add_node(cluster, "n1", gpus=8)
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a"))
        await cluster.pass_time(0.1)
        said = await cluster.events("a")
        assert [(one["reason"], one["message"]) for one in said] == [
            ("Scheduled", "Successfully assigned default/a to n1")
        ]
        assert said[0]["source"]["component"] == "shoal"
        assert (await condition(cluster, "a"))["status"] == "True"
        assert await places(cluster) == {"a": "n1"}


@virtual
async def test_gpus_are_never_given_twice_and_come_free_when_pods_end(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=2)
        start_scheduler(cluster)
        for name in "abc":
            await cluster.create(PODS, pod(name, gpus=1))
        await cluster.pass_time(2)
        there = await places(cluster)
        assert sorted(there.values()) == ["", "n1", "n1"]
        first = next(name for name, node in there.items() if node)
        await cluster.patch(PODS, first, {"status": {"phase": "Succeeded"}}, subresource="status")
        await cluster.until(lambda: is_bound(cluster, *"abc"), 1)


@virtual
async def test_small_pods_leave_whole_nodes_to_large_ones_and_taints_are_minded(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        taint: Obj = {"key": "dedicated", "value": "inference", "effect": "NoSchedule"}
        for name in ("n1", "n2"):
            await add_node(cluster, name, gpus=4)
        await add_node(cluster, "n3", gpus=4, taints=[taint])
        start_scheduler(cluster)
        for number in range(4):
            await cluster.create(PODS, pod(f"small-{number}", gpus=1))
            await cluster.pass_time(1)
        await cluster.create(PODS, pod("large", gpus=4))
        tolerations = [{"key": "dedicated", "operator": "Exists"}]
        await cluster.create(PODS, pod("dedicated", gpus=4, tolerations=tolerations))
        await cluster.until(lambda: is_bound(cluster, "large", "dedicated"), 5)
        there = await places(cluster)
        assert len({there[f"small-{number}"] for number in range(4)}) == 1
        assert there["dedicated"] == "n3"


@virtual
async def test_the_message_names_the_taint_as_it_is_now(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster)
        taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
        await add_node(cluster, "n1", gpus=4, taints=[taint])
        await cluster.create(PODS, pod("first", gpus=1))
        await cluster.pass_time(2)
        assert "Tolerate team=x:NoSchedule (1 node)." in (await condition(cluster, "first"))["message"]
        await cluster.patch(NODES, "n1", {"spec": {"taints": [{**taint, "effect": "NoExecute"}]}})
        await cluster.create(PODS, pod("second", gpus=1))
        await cluster.pass_time(2)
        assert "Tolerate team=x:NoExecute (1 node)." in (await condition(cluster, "second"))["message"]


@virtual
async def test_two_pods_with_one_host_port_go_to_two_nodes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for name in ("n1", "n2"):
            await add_node(cluster, name)
        start_scheduler(cluster)
        for name in "abc":
            one = pod(name)
            one["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
            await cluster.create(PODS, one)
        await cluster.pass_time(2)
        there = await places(cluster)
        assert sorted(there.values()) == ["", "n1", "n2"]
        (waiting,) = [name for name, node in there.items() if not node]
        assert (await condition(cluster, waiting))["message"].startswith(
            "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
        )


@virtual
async def test_a_pod_made_anew_under_its_name_is_another_pod(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=2)
        start_scheduler(cluster)
        for number in range(12):
            await cluster.create(PODS, pod("a", gpus=1 + number % 2))
            if number % 3:
                await cluster.until(lambda: is_bound(cluster, "a"), 2)
            await cluster.delete(PODS, "a", Deletion(grace_s=0))
        await cluster.create(PODS, pod("a", gpus=2))
        await cluster.until(lambda: is_bound(cluster, "a"), 2)


@virtual
async def test_pods_that_somebody_else_binds_hold_what_they_ask(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=2)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("theirs", gpus=1, schedulerName="theirs"))
        await bind(cluster, "theirs", "n1")
        await cluster.create(PODS, pod("large", gpus=2))
        await cluster.create(PODS, pod("small", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "small"), 2)
        assert not await is_bound(cluster, "large")


class Interfering(WriteThroughApi):
    """Whoever is to be bound was bound by somebody else a moment before."""

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        other = {"kind": "Node", "name": "n1" if obj["target"]["name"] == "n2" else "n2"}
        await super().post(kind, namespace, name, subresource, {"metadata": {"name": name}, "target": other})
        return await super().post(kind, namespace, name, subresource, obj)


@virtual
async def test_a_pod_that_somebody_else_bound_first_counts_where_it_is(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for name in ("n1", "n2"):
            await add_node(cluster, name, gpus=1)
        live = start_scheduler(cluster, Interfering(cluster.api, cluster.informers))
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a"), 5)
        await cluster.pass_time(1)
        facts = live.loop.cluster
        holding = facts.pods["default/a"]
        assert (facts.names[holding.row], holding.is_bound) == ((await places(cluster))["a"], True)


class Unwilling(WriteThroughApi):
    """A webhook, say, refuses some pods."""

    tried = 0

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        if name.startswith("bad"):
            self.tried += 1
            raise ForbiddenError('admission webhook "no.example.com" denied the request: not here')
        return await super().post(kind, namespace, name, subresource, obj)


@virtual
async def test_a_binding_that_is_refused_is_told_and_tried_more_and_more_seldom(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=2)
        api = Unwilling(cluster.api, cluster.informers)
        live = start_scheduler(cluster, api)
        await cluster.create(PODS, pod("bad", gpus=1))
        await cluster.create(PODS, pod("good", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "good"), 2)
        await cluster.pass_time(200)
        assert 5 <= api.tried <= 15
        assert live.loop.rounds < 100
        told = await condition(cluster, "bad")
        assert (told["status"], told["reason"]) == ("False", "SchedulerError")
        assert told["message"] == (
            'binding rejected: running Bind plugin "DefaultBinder": '
            'admission webhook "no.example.com" denied the request: not here'
        )


class Hesitant(WriteThroughApi):
    """Each binding is done at its third try; the answers to some are lost."""

    def __init__(self, cluster: SmallCluster) -> None:
        super().__init__(cluster.api, cluster.informers)
        self.tried: dict[str, int] = {}

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        self.tried[name] = self.tried.get(name, 0) + 1
        if self.tried[name] < 3:
            raise BusyError("busy", 0.5)
        done = await super().post(kind, namespace, name, subresource, obj)
        if len(name) % 2:
            raise BusyError("lost", 0.5)
        return done


@virtual
async def test_a_busy_server_is_asked_again_for_the_same_place(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=2)
        api = Hesitant(cluster)
        start_scheduler(cluster, api)
        for name in ("a", "bb"):
            await cluster.create(PODS, pod(name, gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a", "bb"), 10)
        await cluster.pass_time(30)
        assert api.tried == {"a": 3, "bb": 3}
        for name in ("a", "bb"):
            assert not [one for one in await cluster.events(name) if one["type"] == "Warning"]


@virtual
async def test_a_node_that_goes_while_a_pod_is_bound_to_it_is_not_tried_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=1)
        api = Hesitant(cluster)
        start_scheduler(cluster, api)
        await cluster.create(PODS, pod("bb", gpus=1))
        await cluster.until(lambda: api.tried.get("bb") == 1, 5)
        await cluster.delete(NODES, "n1")
        await cluster.pass_time(5)
        assert not await is_bound(cluster, "bb")
        await add_node(cluster, "n2", gpus=1)
        await cluster.until(lambda: is_bound(cluster, "bb"), 10)
        assert (await places(cluster))["bb"] == "n2"


@virtual
async def test_two_schedulers_on_one_cluster_count_each_others_pods(tmp_path: Path) -> None:
    """Nobody can keep two that seize the same free device at the same moment apart; so one at a time has a pod that
    waits."""
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        for number in range(4):
            await add_node(cluster, f"n{number}", gpus=4)
        start_scheduler(cluster)
        laws = Laws(cluster)
        laws.watch({PODS: None, NODES: None})
        draw, ended = random.Random(7), 0
        for number in range(60):
            scheduler = draw.choice(["shoal", "default-scheduler"])
            await cluster.create(PODS, pod(f"p{number}", gpus=draw.choice([1, 2, 4]), schedulerName=scheduler))
            await cluster.pass_time(2)
            while not all((there := await places(cluster)).values()):
                await cluster.delete(PODS, draw.choice([name for name, node in there.items() if node]), AT_ONCE)
                await cluster.pass_time(15)
                ended += 1
        assert laws.broken == []
        assert ended > 20
        await laws.end()


@virtual
async def test_the_capacity_type_that_a_pod_or_its_class_states_is_kept(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        stated = {"karpenter.sh/capacity-type": "on-demand"}
        await add_node(cluster, "spot", gpus=8, labels={"karpenter.sh/capacity-type": "spot"})
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "production"}, "value": 10})
        start_scheduler(cluster)
        own, flexible = pod("own", gpus=1), pod("flexible", gpus=1)
        own["metadata"]["annotations"] = stated
        flexible["metadata"]["annotations"] = {**stated, "shoal.dev/capacity-type-fallback": "true"}
        for each in (own, flexible):
            await cluster.create(PODS, each)
        await cluster.patch(PRIORITY_CLASSES, "production", {"metadata": {"labels": stated}})
        await cluster.pass_time(1)
        await cluster.create(PODS, pod("of-class", gpus=1, priorityClassName="production"))
        await cluster.pass_time(2)
        assert await places(cluster) == {"own": "", "flexible": "spot", "of-class": ""}
        await add_node(cluster, "steady", gpus=8, labels=stated)
        await cluster.until(lambda: is_bound(cluster, "own", "of-class"), 5)
        assert await places(cluster) == {"own": "steady", "flexible": "spot", "of-class": "steady"}
