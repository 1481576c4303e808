"""DaemonSets on a whole control plane: one pod on each node that fits, whatever happens to nodes and pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.pod_life import PodLife, template, workload
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from shoal.client.port import Patch
from shoal.embedded.controllers.daemon_sets.controller import daemon_set_controller


def agent(**spec: Any) -> Obj:
    return workload("agent", None, **spec)


async def add_nodes(cluster: SmallCluster, *names: str, **labels: str) -> None:
    """Ready ones: the taint that the API gives new nodes is taken away."""
    for name in names:
        await cluster.create(NODES, {"metadata": {"name": name, "labels": labels}})
        await cluster.patch(NODES, name, {"spec": {"taints": None}})


async def where(cluster: SmallCluster) -> dict[str, str]:
    """The image on each node; a node with two pods fails the test."""
    found: dict[str, str] = {}
    for pod in await cluster.pods():
        node = pod["spec"].get("nodeName", "?")
        assert node not in found
        found[node] = pod["spec"]["containers"][0]["image"]
    return found


async def status_of(cluster: SmallCluster) -> Obj:
    found: Obj = (await cluster.get(DAEMON_SETS, "agent"))["status"]
    return found


async def roll(cluster: SmallCluster, image: str) -> None:
    await cluster.patch(DAEMON_SETS, "agent", {"spec": {"template": template("agent", image)}})


@virtual
async def test_every_node_gets_one_pod_meant_for_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [daemon_set_controller, PodLife().controller]) as cluster:
        await add_nodes(cluster, "n1", "n2")
        await cluster.create(DAEMON_SETS, agent())
        await cluster.pass_time(5)
        await add_nodes(cluster, "n3")
        await cluster.pass_time(5)
        assert await where(cluster) == dict.fromkeys(("n1", "n2", "n3"), "web:1")
        assert await status_of(cluster) == {
            "observedGeneration": 1,
            "currentNumberScheduled": 3,
            "desiredNumberScheduled": 3,
            "numberMisscheduled": 0,
            "numberReady": 3,
            "numberAvailable": 3,
            "updatedNumberScheduled": 3,
        }
        said = await cluster.events("agent")
        assert {one["message"] for one in said} == {
            f"Created pod: {pod['metadata']['name']}" for pod in await cluster.pods()
        }
        assert {one["source"]["component"] for one in said} == {"daemonset-controller"}
        pod = next(pod for pod in await cluster.pods() if pod["spec"]["nodeName"] == "n3")
        [revision] = await cluster.all(CONTROLLER_REVISIONS)
        hashed = revision["metadata"]["labels"]["controller-revision-hash"]
        assert revision["metadata"]["name"] == f"agent-{hashed}"
        labels = {"app": "agent", "controller-revision-hash": hashed, "pod-template-generation": "1"}
        assert pod["metadata"]["labels"] == labels
        field = {"key": "metadata.name", "operator": "In", "values": ["n3"]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        assert pod["spec"]["affinity"] == affinity
        tolerated = {(one["key"].partition("/")[2], one["effect"]) for one in pod["spec"]["tolerations"]}
        assert tolerated == {
            ("not-ready", "NoExecute"),
            ("unreachable", "NoExecute"),
            ("disk-pressure", "NoSchedule"),
            ("memory-pressure", "NoSchedule"),
            ("pid-pressure", "NoSchedule"),
            ("unschedulable", "NoSchedule"),
        }


@virtual
async def test_pods_follow_labels_and_taints(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [daemon_set_controller, PodLife().controller]) as cluster:
        await add_nodes(cluster, "n1", "n2", gpu="yes")
        await add_nodes(cluster, "n3")
        selecting = template("agent", nodeSelector={"gpu": "yes"})
        await cluster.create(DAEMON_SETS, agent(template=selecting))
        await cluster.pass_time(5)
        assert set(await where(cluster)) == {"n1", "n2"}
        await cluster.patch(NODES, "n3", {"metadata": {"labels": {"gpu": "yes"}}})
        await cluster.patch(NODES, "n2", {"metadata": {"labels": {"gpu": None}}})
        await cluster.pass_time(5)
        assert set(await where(cluster)) == {"n1", "n3"}
        # A taint that only keeps new pods away leaves the old one, which is then where none should be.
        await cluster.patch(NODES, "n1", {"spec": {"taints": [{"key": "busy", "effect": "NoSchedule"}]}})
        await cluster.pass_time(5)
        assert set(await where(cluster)) == {"n1", "n3"}
        status = await status_of(cluster)
        assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (1, 1)
        await cluster.patch(NODES, "n1", {"spec": {"taints": [{"key": "busy", "effect": "NoExecute"}]}})
        await cluster.pass_time(5)
        assert set(await where(cluster)) == {"n3"}


@virtual
async def test_a_cordoned_node_keeps_its_daemon(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [daemon_set_controller, PodLife().controller]) as cluster:
        await add_nodes(cluster, "n1")
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        await cluster.patch(NODES, "n1", {"spec": {"unschedulable": True, "taints": [taint]}})
        await cluster.create(DAEMON_SETS, agent())
        await cluster.pass_time(5)
        assert set(await where(cluster)) == {"n1"}


@virtual
async def test_failed_daemons_are_replaced_ever_more_slowly(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [daemon_set_controller, PodLife(ends_after_s=0).controller]) as cluster:
        await add_nodes(cluster, "n1")
        await cluster.create(DAEMON_SETS, agent())
        times = []
        for _ in range(5):
            began = cluster.clock.seconds()
            await cluster.pass_time(0.3)
            [pod] = await cluster.pods()
            await cluster.patch(PODS, pod["metadata"]["name"], {"status": {"phase": "Failed"}}, "status")
            uid = pod["metadata"]["uid"]

            async def is_new(before: str = uid) -> bool:
                pods = await cluster.pods()
                return len(pods) == 1 and pods[0]["metadata"]["uid"] != before

            await cluster.until(is_new, 60)
            times.append(cluster.clock.seconds() - began)
        assert times[0] < 1
        assert times == sorted(times)
        assert 7 < times[-1] < 10
        said = [one["message"] for one in await cluster.events("agent") if one["reason"] == "FailedDaemonPod"]
        assert said[0].startswith("Found failed daemon pod default/agent-")
        assert said[0].endswith(" on node n1, will try to kill it")


@virtual
async def test_a_rolling_update_misses_no_more_than_allowed(tmp_path: Path) -> None:
    nodes = [f"n{number}" for number in range(6)]
    async with small_cluster(tmp_path, [daemon_set_controller, PodLife().controller]) as cluster:
        await add_nodes(cluster, *nodes)
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "34%", "maxSurge": 0}}
        await cluster.create(DAEMON_SETS, agent(updateStrategy=rolling))
        await cluster.pass_time(5)
        await roll(cluster, "agent:2")
        fewest = 6
        for _ in range(300):
            await cluster.pass_time(0.1)
            pods = await cluster.pods()
            ready = [
                pod
                for pod in pods
                if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
            ]
            fewest = min(fewest, len(ready))
        assert fewest == 3
        assert await where(cluster) == dict.fromkeys(nodes, "agent:2")
        assert (await status_of(cluster))["updatedNumberScheduled"] == 6


@virtual
async def test_a_surge_never_leaves_a_node_without_a_serving_daemon(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [daemon_set_controller, PodLife().controller]) as cluster:
        await add_nodes(cluster, "n1", "n2", "n3")
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
        await cluster.create(DAEMON_SETS, agent(updateStrategy=rolling))
        await cluster.pass_time(5)
        await roll(cluster, "agent:2")
        most = 0
        for _ in range(200):
            await cluster.pass_time(0.1)
            living = [pod for pod in await cluster.pods() if "deletionTimestamp" not in pod["metadata"]]
            serving = {pod["spec"].get("nodeName") for pod in living if pod["status"]["phase"] == "Running"}
            assert serving == {"n1", "n2", "n3"}
            most = max(most, len(living))
        assert most == 4
        assert await where(cluster) == dict.fromkeys(("n1", "n2", "n3"), "agent:2")


@virtual
async def test_undo_by_the_data_of_a_revision(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [daemon_set_controller, PodLife().controller]) as cluster:
        await add_nodes(cluster, "n1", "n2")
        await cluster.create(DAEMON_SETS, agent(revisionHistoryLimit=1))
        for image in ("agent:2", "agent:3"):
            await cluster.pass_time(15)
            await roll(cluster, image)
        await cluster.pass_time(15)
        kept = sorted(await cluster.all(CONTROLLER_REVISIONS), key=lambda one: int(one["revision"]))
        assert [one["revision"] for one in kept] == [2, 3]
        await cluster.api.patch(DAEMON_SETS, "default", "agent", Patch("strategic", kept[0]["data"]))
        await cluster.pass_time(15)
        assert await where(cluster) == {"n1": "agent:2", "n2": "agent:2"}
        assert sorted(one["revision"] for one in await cluster.all(CONTROLLER_REVISIONS)) == [3, 4]


@virtual
async def test_on_delete_changes_only_what_people_delete(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [daemon_set_controller, PodLife().controller]) as cluster:
        await add_nodes(cluster, "n1", "n2")
        await cluster.create(DAEMON_SETS, agent(updateStrategy={"type": "OnDelete"}))
        await cluster.pass_time(5)
        await roll(cluster, "agent:2")
        await cluster.pass_time(5)
        assert set((await where(cluster)).values()) == {"web:1"}
        first = next(pod for pod in await cluster.pods() if pod["spec"]["nodeName"] == "n1")
        await cluster.delete(PODS, first["metadata"]["name"])
        await cluster.pass_time(5)
        assert await where(cluster) == {"n1": "agent:2", "n2": "web:1"}
