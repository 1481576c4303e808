"""Objects that no sensible person writes: they may wait for ever, be refused or do nothing; nothing falls over them.

A controller or kubelet that meets them logs no failure, ends no loop, and goes on to serve the sensible object that
comes after them.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from build.crews import Crew
from build.fleets import machine
from build.living_work import template
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import (
    CONFIG_MAPS,
    CRON_JOBS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    STATEFUL_SETS,
    Kind,
)
from shoal.client.port import Deletion

_MOST = 2**63 - 1
_FEW = 2**31 - 1
_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{','.join(['*' + chr(97 + at)] * 9)}]\n" for at in range(15)
)
_REPLICAS = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: %d}\n"


@asynccontextmanager
async def _living(folder: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[tuple[SmallCluster, Crew]]:
    """Everything beside the server; in the end it still works, and nothing was logged as a failure."""
    async with small_cluster(folder) as cluster:
        crew = Crew(cluster, [machine(gpus=2)], random.Random(1))
        try:
            await cluster.pass_time(10)
            yield cluster, crew
            pod = template("sensible", annotations={"shoal.dev/run-for": "1s"}, restartPolicy="Never")
            await cluster.create(JOBS, {"metadata": {"name": "sensible"}, "spec": {"template": pod}})

            async def is_done() -> bool:
                return bool((await cluster.get(JOBS, "sensible"))["status"].get("succeeded"))

            await cluster.until(is_done, 60)
            assert not crew.broken()
        finally:
            await crew.end()
    failures = [record.getMessage() for record in caplog.records if record.exc_info]
    assert not failures, failures


_NOBODYS = template("absurd", serviceAccountName="nobody")
"""Is refused whenever it is tried."""
_NEVER = template("absurd", serviceAccountName="nobody", restartPolicy="Never")
_LABELLED = {"selector": {"matchLabels": {"app": "absurd"}}}
_NUMBERS: dict[str, tuple[Kind, Obj]] = {
    "a job that may take for ever and is kept for ever": (
        JOBS,
        {"activeDeadlineSeconds": _MOST, "ttlSecondsAfterFinished": _FEW, "backoffLimit": _FEW},
    ),
    "a job of a thousand million pods, none at once": (JOBS, {"completions": 10**9, "parallelism": 0}),
    "a job of two thousand million pods that are refused": (JOBS, {"parallelism": _FEW, "template": _NEVER}),
    "a stateful set of two thousand million pods that are refused": (
        STATEFUL_SETS,
        {**_LABELLED, "replicas": _FEW, "podManagementPolicy": "Parallel", "serviceName": "", "template": _NOBODYS},
    ),
    "a stateful set of two thousand million pods that are refused, from the last but one": (
        STATEFUL_SETS,
        {**_LABELLED, "replicas": _FEW, "ordinals": {"start": _FEW}, "serviceName": "", "template": _NOBODYS},
    ),
    "a deployment of two thousand million pods that are refused": (
        DEPLOYMENTS,
        {"replicas": _FEW, "template": _NOBODYS},
    ),
    "a cron job that is never too late": (CRON_JOBS, {"startingDeadlineSeconds": _MOST}),
    "a cron job of every 292 years": (CRON_JOBS, {"schedule": "@every 2562047h"}),
    "a cron job of the 30th of February": (CRON_JOBS, {"schedule": "0 0 30 2 *"}),
    "a deployment whose pods are never available": (
        DEPLOYMENTS,
        {"minReadySeconds": _FEW - 1, "progressDeadlineSeconds": _FEW, "revisionHistoryLimit": _FEW},
    ),
}


@pytest.mark.parametrize("name", _NUMBERS)
@virtual
async def test_absurd_numbers(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kind, more = _NUMBERS[name]
    pod = template("absurd", restartPolicy="Always" if kind == DEPLOYMENTS else "Never")
    spec: Obj = {"template": pod}
    if kind == CRON_JOBS:
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    elif kind == DEPLOYMENTS:
        spec |= {"selector": {"matchLabels": {"app": "absurd"}}, "replicas": 2}
    async with _living(tmp_path, caplog) as (cluster, _):
        await cluster.create(kind, {"metadata": {"name": "absurd"}, "spec": {**spec, **more}})
        await cluster.pass_time(300)
        kept = (await cluster.get(kind, "absurd"))["spec"]
        assert {key: kept[key] for key in more} == more


_WORDS = {
    "run-for": ["9e99h", "-5s", "∞", "\uff11\uff12s", "9" * 300 + "h", "", "nan", "1h" * 2000, "x" * 200_000],
    "exit-code": ["256", "-1", "9" * 5000, "1.5", "\uff11"],
    "gpu-memory": ["9" * 5000 + "Gi", "-1Gi", "1e999999999", ""],
    "log": ["\x00", "x\n" * 100_000],
}


@pytest.mark.parametrize("name", _WORDS)
@virtual
async def test_absurd_annotations_of_pods(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with _living(tmp_path, caplog) as (cluster, _):
        for at, words in enumerate(_WORDS[name]):
            for key in (f"shoal.dev/{name}", f"shoal.dev/{name}.main"):
                pod = template("absurd", annotations={key: words}, restartPolicy="Never", nodeName="node-0")
                pod["metadata"]["name"] = f"absurd-{at}-{key.count('.')}"
                pod["spec"]["containers"][0]["resources"] = {}
                await cluster.create(PODS, pod)
        await cluster.pass_time(60)
        told = [event for event in await _events(cluster) if event["reason"] == "InvalidAnnotation"]
        assert name == "log" or told
        assert all(len(event["message"]) < 400 for event in told)


_GPU_FAULTS = [
    '{"0":"x"}',
    '{"-1":79}',
    '{"%s":79}' % ("9" * 5000),
    '{"0":%s}' % ("9" * 30),
    "[" * 9000,
    '{"00":79,"0":48}',
]
_FAULTS = ['{"kind":"fail"', '{"kind":"nope"}', "[]", "x" * 200_000, '{"kind":"reboot","id":"%s"}' % ("y" * 99_000)]


@pytest.mark.parametrize(("key", "texts"), [("gpu-faults", _GPU_FAULTS), ("fault", _FAULTS), ("topology", _FAULTS)])
@virtual
async def test_absurd_annotations_of_nodes(
    key: str, texts: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with _living(tmp_path, caplog) as (cluster, _):
        for text in texts:
            await cluster.patch(NODES, "node-0", {"metadata": {"annotations": {f"shoal.dev/{key}": text}}})
            await cluster.pass_time(100)
        await cluster.patch(NODES, "node-0", {"metadata": {"annotations": {f"shoal.dev/{key}": None}}})
        await cluster.pass_time(10)
        node = await cluster.get(NODES, "node-0")
        assert [one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"] == ["True"]
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "2"


_CONFIGS = {
    "a bomb of aliases": _BOMB,
    "an alias of nothing": "version: v1\nmig-configs: *nope",
    "a list in itself": "&a [*a]",
    "very deep": "[" * 100_000,
    "an object to be made": '!!python/object/apply:os.system ["false"]',
    "control characters": "\ufeff\u0000",
    "a million million replicas": _REPLICAS % 10**12,
    "fewer than no replicas": _REPLICAS % -3,
    "more instances than atoms": "version: v1\nmig-configs: {any: [{devices: all, mig-enabled: true, mig-devices: "
    '{"1g.10gb": 99999999999999999999}}]}',
    "instances of nothing": "version: v1\nmig-configs: {any: [{devices: [0, 9], mig-enabled: true, mig-devices: "
    '{"9g.999gb": 1}}]}',
}


@pytest.mark.parametrize("name", _CONFIGS)
@virtual
async def test_absurd_configurations_of_gpus(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with _living(tmp_path, caplog) as (cluster, _):
        await cluster.create(NAMESPACES, {"metadata": {"name": "gpu-operator"}})
        data = {"config.yaml": _CONFIGS[name], "any": _CONFIGS[name]}
        meta = {"name": "absurd", "namespace": "gpu-operator"}
        await cluster.create(CONFIG_MAPS, {"metadata": meta, "data": data})
        labels = {"nvidia.com/mig.config": "any", "nvidia.com/device-plugin.config": "any"}
        await cluster.patch(NODES, "node-0", {"metadata": {"labels": labels}})
        await cluster.pass_time(10)
        assert [event for event in await _events(cluster) if event["reason"] == "GpuConfigChanged"]
        await cluster.patch(NODES, "node-0", {"metadata": {"labels": dict.fromkeys(labels)}})
        await cluster.pass_time(10)


@virtual
async def test_a_pod_of_dozens_of_containers_that_all_crash(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    said = {"shoal.dev/run-for": "0s", "shoal.dev/exit-code": "1"}
    containers = [{"name": f"c{at}", "image": "x"} for at in range(20)]
    async with _living(tmp_path, caplog) as (cluster, _):
        await cluster.create(
            PODS, {"metadata": {"name": "many", "annotations": said}, "spec": {"containers": containers}}
        )
        await cluster.pass_time(1800)
        pod = await cluster.get(PODS, "many")
        assert all(one["restartCount"] > 3 for one in pod["status"]["containerStatuses"])
        assert len(pod["status"]["containerStatuses"]) == len(containers)
        await cluster.delete(PODS, "many")
        await cluster.pass_time(60)
        assert await cluster.pods() == []


@virtual
async def test_owners_in_a_circle_that_is_deleted_in_the_foreground(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with _living(tmp_path, caplog) as (cluster, _):
        names = ("a", "b", "c", "self")
        owner_of = {"a": "b", "b": "c", "c": "a", "self": "self"}
        made: dict[str, Any] = {name: await cluster.create(CONFIG_MAPS, {"metadata": {"name": name}}) for name in names}
        for name, owner in owner_of.items():
            reference = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner,
                "uid": made[owner]["metadata"]["uid"],
                "blockOwnerDeletion": True,
            }
            await cluster.patch(CONFIG_MAPS, name, {"metadata": {"ownerReferences": [reference]}})
        await cluster.delete(CONFIG_MAPS, "a", Deletion(policy="Foreground"))
        await cluster.delete(CONFIG_MAPS, "self", Deletion(policy="Foreground"))

        async def are_gone() -> bool:
            return not {one["metadata"]["name"] for one in await cluster.all(CONFIG_MAPS, "default")} & set(names)

        await cluster.until(are_gone, 60)


async def _events(cluster: SmallCluster) -> list[Obj]:
    return await cluster.all(EVENTS)
