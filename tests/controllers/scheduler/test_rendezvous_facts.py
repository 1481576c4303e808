"""What pods of a distributed job that ask for it are told with their binding: ranks, nodes, where the first one is."""

from __future__ import annotations

from pathlib import Path

import msgspec

from build.live_schedulers import add_node, is_bound, places, pod, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import JOBS, NODES, PODS
from shoal.client.port import Deletion
from shoal.controllers.gatekeeping import rendezvous as asked
from shoal.controllers.scheduler import rendezvous
from shoal.embedded.controllers.jobs.controller import job_controller

ASKS = {"shoal.dev/rendezvous": "true"}
OTHERS = {"shoal.dev/rendezvous", "shoal.dev/devices"}
LIGHT = "pod-group.scheduling.sigs.k8s.io"


def worker(number: int, size: int, annotations: dict[str, str] | None = None) -> Obj:
    labels = {f"{LIGHT}/name": "train", f"{LIGHT}/min-available": str(size)}
    said = ASKS | (annotations or {})
    name = f"train-{number}"
    return pod(name, gpus=1, labels=labels, annotations=said, hostname=name, subdomain="train")


async def facts(cluster: SmallCluster, name: str) -> dict[str, str]:
    found: dict[str, str] = (await cluster.get(PODS, name))["metadata"]["annotations"]
    return {key.removeprefix("shoal.dev/"): value for key, value in found.items() if key not in OTHERS}


def test_whoever_refers_to_the_facts_and_whoever_writes_them_call_them_the_same() -> None:
    written = {
        rendezvous.RANK,
        rendezvous.NODE_RANK,
        rendezvous.WORLD_SIZE,
        rendezvous.MASTER_ADDRESS,
        rendezvous.MASTER_PORT,
        rendezvous.NODE_LIST,
        rendezvous.TOPOLOGY,
    }
    assert (written, rendezvous.ASKS) == (set(asked.VARIABLES.values()), asked.ASKS)


@virtual
async def test_ranks_follow_the_numbers_and_everybody_knows_the_first(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for number in range(3):
            await add_node(cluster, f"n{number}", gpus=4)
        start_scheduler(cluster)
        for number in reversed(range(12)):
            await cluster.create(PODS, worker(number, 12))
        await cluster.until(lambda: is_bound(cluster, *(f"train-{number}" for number in range(12))))
        there = await places(cluster)
        for number in range(12):
            assert await facts(cluster, f"train-{number}") == {
                "rank": str(number),
                "node-rank": str(number),
                "world-size": "12",
                "master-addr": "train-0.train.default.svc",
                "master-port": "29500",
                "nodes": ",".join(there[f"train-{each}"] for each in range(12)),
            }


@virtual
async def test_a_pod_that_replaces_another_takes_its_rank_also_from_a_successor(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=8)
        first = start_scheduler(cluster)
        for number in range(4):
            await cluster.create(PODS, worker(number, 4))
        await cluster.until(lambda: is_bound(cluster, *(f"train-{number}" for number in range(4))))
        await first.kill()
        await cluster.delete(PODS, "train-2", Deletion(grace_s=0))
        start_scheduler(cluster)
        await cluster.create(PODS, worker(77, 4))
        await cluster.until(lambda: is_bound(cluster, "train-77"))
        assert (await facts(cluster, "train-77"))["rank"] == "2"


@virtual
async def test_levels_of_the_network_are_told_where_closeness_was_wanted(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for number in range(4):
            await add_node(cluster, f"n{number}", gpus=1, labels={"rack": f"r{number // 2}"})
        start_scheduler(cluster)
        near = {"kueue.x-k8s.io/podset-preferred-topology": "rack"}
        for number in range(4):
            await cluster.create(PODS, worker(number, 4, annotations=near))
        await cluster.until(lambda: is_bound(cluster, *(f"train-{number}" for number in range(4))))
        there = await places(cluster)
        wanted: dict[str, list[int]] = {}
        for number in range(4):
            wanted.setdefault(f"r{int(there[f'train-{number}'][1]) // 2}", []).append(number)
        assert msgspec.json.decode((await facts(cluster, "train-3"))["nccl-topology"]) == {"rack": wanted}


@virtual
async def test_without_a_wish_the_levels_that_nodes_are_usually_labelled_with_are_told(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        labels = {"topology.kubernetes.io/zone": "a", "cloud.provider.com/topology-rack": "r1", "colour": "red"}
        await add_node(cluster, "n1", gpus=4, labels=labels)
        start_scheduler(cluster)
        for number in range(2):
            await cluster.create(PODS, worker(number, 2))
        await cluster.until(lambda: is_bound(cluster, "train-0", "train-1"))
        told = msgspec.json.decode((await facts(cluster, "train-0"))["nccl-topology"])
        assert list(told) == ["topology.kubernetes.io/zone", "cloud.provider.com/topology-rack"]
        assert told["cloud.provider.com/topology-rack"] == {"r1": [0, 1]}


@virtual
async def test_on_the_nodes_own_network_the_first_is_found_at_its_node(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=8)
        addresses = [{"type": "InternalIP", "address": "10.0.0.7"}]
        await cluster.patch(NODES, "n1", {"status": {"addresses": addresses}}, subresource="status")
        start_scheduler(cluster)
        one = worker(0, 1, annotations={"shoal.dev/master-port": "1234"})
        del one["spec"]["subdomain"], one["spec"]["hostname"]
        one["spec"]["hostNetwork"] = True
        await cluster.create(PODS, one)
        await cluster.create(PODS, pod("alone", annotations=ASKS))
        await cluster.create(PODS, pod("silent"))
        await cluster.until(lambda: is_bound(cluster, "train-0", "alone", "silent"))
        found = await facts(cluster, "train-0")
        assert (found["master-addr"], found["master-port"]) == ("10.0.0.7", "1234")
        alone = await facts(cluster, "alone")
        assert (alone["rank"], alone["world-size"], alone["nodes"]) == ("0", "1", "n1")
        assert alone["master-addr"] == "localhost"
        assert not (await cluster.get(PODS, "silent"))["metadata"].get("annotations")


@virtual
async def test_where_nobody_can_know_the_first_ones_address_it_says_so(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=8)
        start_scheduler(cluster)
        for number in range(2):
            one = worker(number, 2)
            del one["spec"]["subdomain"]
            await cluster.create(PODS, one)
        await cluster.until(lambda: is_bound(cluster, "train-0", "train-1"))
        await cluster.pass_time(5)
        assert "master-addr" not in await facts(cluster, "train-0")
        told = [event["reason"] for event in await cluster.events("train-0")]
        assert "NoMasterAddress" in told
        assert "NoMasterAddress" not in [event["reason"] for event in await cluster.events("train-1")]


async def a_job(cluster: SmallCluster, parallelism: int, **annotations: str) -> list[str]:
    """Its pods ask to be told of each other."""
    asking = {**pod("x", gpus=1)["spec"], "restartPolicy": "Never", "subdomain": "train"}
    template = {"metadata": {"annotations": ASKS}, "spec": asking}
    counts = {"parallelism": parallelism, "completions": parallelism, "completionMode": "Indexed"}
    meta = {"name": "train", "annotations": annotations}
    await cluster.create(JOBS, {"metadata": meta, "spec": {**counts, "template": template}})

    async def are_there() -> bool:
        return len(await cluster.pods()) == parallelism

    await cluster.until(are_there)
    return sorted(await places(cluster))


@virtual
async def test_pods_of_a_job_that_are_to_meet_start_together_without_another_word(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        await add_node(cluster, "n1", gpus=2)
        start_scheduler(cluster)
        names = await a_job(cluster, 3)
        await cluster.pass_time(20)
        assert set((await places(cluster)).values()) == {""}
        await add_node(cluster, "n2", gpus=1)
        await cluster.until(lambda: is_bound(cluster, *names))
        told = [await facts(cluster, name) for name in names]
        assert [(one["rank"], one["world-size"]) for one in told] == [("0", "3"), ("1", "3"), ("2", "3")]
        assert {one["master-addr"] for one in told} == {"train-0.train.default.svc"}


@virtual
async def test_a_pod_whose_fellows_go_their_own_way_is_told_so_and_no_rank(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        await add_node(cluster, "n1", gpus=2)
        start_scheduler(cluster)
        names = await a_job(cluster, 2, **{"shoal.dev/gang": "false"})
        await cluster.until(lambda: is_bound(cluster, *names))
        await cluster.pass_time(5)
        for name in names:
            assert "rank" not in await facts(cluster, name)
            [told] = [event["message"] for event in await cluster.events(name) if event["reason"] == "NoGang"]
            assert "Annotate Job train shoal.dev/gang" in told
