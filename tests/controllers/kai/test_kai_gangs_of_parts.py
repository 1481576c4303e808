"""Gangs whose parts come from the kind of their owner: JobSets, LeaderWorkerSets."""

from __future__ import annotations

from pathlib import Path

from build.kai_clusters import add_kai_queue, bound, kai_cluster, start_kai
from build.kai_owners import QUEUED, add_owned, add_owner
from build.live_schedulers import add_node
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import JOB_SETS, KAI_POD_GROUPS, LEADER_WORKER_SETS
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.port import Deletion

_JOB, _LWS = "jobset.sigs.k8s.io/", "leaderworkerset.sigs.k8s.io/"
_TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}}


async def _add_replica(cluster: SmallCluster, owner: Obj, job: str, index: int, pods: int) -> None:
    labels = {f"{_JOB}replicatedjob-name": job, f"{_JOB}job-index": str(index)}
    for number in range(pods):
        await add_owned(cluster, owner, f"{job}-{index}-{number}", labels)


@virtual
async def test_a_job_set_starts_when_every_replica_of_every_job_has_its_pods(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path, "jobset") as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "team", 8)
        jobs = [
            {"name": "head", "template": {"spec": {"template": _TEMPLATE}}},
            {"name": "work", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": _TEMPLATE}}},
        ]
        owner = await add_owner(cluster, JOB_SETS, "set", {"replicatedJobs": jobs}, labels=QUEUED)
        await _add_replica(cluster, owner, "work", 0, 2)
        await _add_replica(cluster, owner, "work", 1, 2)
        await cluster.pass_time(5)
        assert await bound(cluster) == []
        await _add_replica(cluster, owner, "head", 0, 1)
        await cluster.pass_time(5)
        assert await bound(cluster) == []
        await add_node(cluster, "n2", gpus=1)
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 5
        # A replica that starts anew does so together, while the others run.
        for number in range(2):
            await cluster.delete(PODS, f"work-1-{number}", Deletion(grace_s=0))
        await cluster.pass_time(5)
        labels = {f"{_JOB}replicatedjob-name": "work", f"{_JOB}job-index": "1"}
        await add_owned(cluster, owner, "work-1-new0", labels)
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 3
        await add_owned(cluster, owner, "work-1-new1", labels)
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 5


@virtual
async def test_a_leader_that_is_to_be_ready_first_starts_alone_and_its_workers_together(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path, "leaderworkerset") as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "team", 8)
        template = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
        spec = {"leaderWorkerTemplate": {"size": 3, "workerTemplate": template}, "startupPolicy": "LeaderReady"}
        owner = await add_owner(cluster, LEADER_WORKER_SETS, "serve", spec, labels=QUEUED)
        for index in range(3):
            labels = {f"{_LWS}group-index": "0", f"{_LWS}worker-index": str(index)}
            await add_owned(cluster, owner, f"serve-0-{index}", labels)
            await cluster.pass_time(5)
        assert await bound(cluster) == ["serve-0-0"]
        await add_node(cluster, "n2", gpus=1)
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 3
        (group,) = await cluster.all(KAI_POD_GROUPS)
        assert group["metadata"]["name"] == f"pg-serve-{owner['metadata']['uid']}-group-0"
