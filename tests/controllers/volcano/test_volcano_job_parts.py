"""What belongs to Volcano's jobs beside their course: plugins, sizes, dependencies, their end, and faults in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.virtual_time import virtual
from build.volcano_scenes import group_of, phases, running, submit, task, volcano_scene
from shoal.client.ecosystem_kinds import VOLCANO_JOBS
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, SECRETS, SERVICES


@virtual
async def test_a_task_waits_until_those_it_depends_on_are_ready(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        waits = task("master", dependsOn={"name": ["worker"]})
        made = await submit(scene, waits, task("worker", 2, gpus=4))
        await scene.cluster.until(lambda: running(scene, 2))
        await scene.cluster.until(lambda: running(scene, 3))
        pods = await scene.pods()
        born = {name: one["metadata"]["resourceVersion"] for name, one in pods.items()}
        assert set(born) == {"train-master-0", "train-worker-0", "train-worker-1"}
        await scene.cluster.pass_time(2)
        assert (await group_of(scene, made))["spec"]["minMember"] == 3
        assert await scene.job_is("train", "Running")


@virtual
async def test_a_finished_job_goes_after_its_time(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await submit(scene, task(), ttlSecondsAfterFinished=30)
        await scene.cluster.until(lambda: running(scene, 1))
        await scene.end("train-worker-0")
        await scene.cluster.until(lambda: scene.job_is("train", "Completed"))
        await scene.cluster.pass_time(20)
        assert await scene.job_is("train", "Completed")
        await scene.cluster.pass_time(15)
        left = await scene.cluster.all(VOLCANO_JOBS)
        assert all("deletionTimestamp" in one["metadata"] for one in left)


@virtual
async def test_plugins_tell_pods_who_and_where_the_others_are(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        plugins: Obj = {"env": [], "ssh": [], "pytorch": ["--master=master", "--worker=worker", "--port=23456"]}
        await submit(scene, task("master"), task("worker", 2), plugins=plugins)
        await scene.cluster.until(lambda: running(scene, 3))
        spec = (await scene.pods())["train-worker-1"]["spec"]
        told = {one["name"]: one.get("value") for one in spec["containers"][0]["env"]}
        assert told["VC_TASK_INDEX"] == told["VK_TASK_INDEX"] == "1"
        assert (told["RANK"], told["WORLD_SIZE"], told["MASTER_PORT"]) == ("2", "3", "23456")
        assert told["MASTER_ADDR"] == "train-master-0.train"
        assert (spec["hostname"], spec["subdomain"]) == ("train-worker-1", "train")
        assert {one["mountPath"] for one in spec["containers"][0]["volumeMounts"]} >= {"/etc/volcano", "/root/.ssh"}
        service = await scene.cluster.get(SERVICES, "train")
        assert service["spec"]["clusterIP"] == "None"
        hosts = (await scene.cluster.get(CONFIG_MAPS, "train-svc"))["data"]
        assert hosts["VC_WORKER_HOSTS"] == "train-worker-0.train,train-worker-1.train"
        assert hosts["worker.host"] == "train-worker-0.train\ntrain-worker-1.train"
        keys = (await scene.cluster.get(SECRETS, "train-ssh"))["data"]
        assert set(keys) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
        controlled = (await scene.status(VOLCANO_JOBS, "train"))["controlledResources"]
        assert controlled == {
            "plugin-env": "env",
            "plugin-pytorch": "pytorch",
            "plugin-ssh": "ssh",
            "plugin-svc": "svc",
        }


@virtual
async def test_a_job_made_larger_and_smaller_has_as_many_pods(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await submit(scene, task(replicas=2), minAvailable=1, plugins={"svc": []})
        await scene.cluster.until(lambda: running(scene, 2))
        for count in (4, 1):
            await scene.cluster.patch(VOLCANO_JOBS, "train", {"spec": {"tasks": [task(replicas=count)]}})
            await scene.cluster.until(lambda count=count: running(scene, count))  # type: ignore[misc]
            await scene.cluster.pass_time(2)
            data = (await scene.cluster.get(CONFIG_MAPS, "train-svc"))["data"]
            assert data["VC_WORKER_NUM"] == str(count)
        assert await phases(scene) == ["Pending", "Running"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"tasks": []}, "No task specified in job spec"),
        ({"tasks": [task("a"), task("a")]}, "duplicated task name a"),
        ({"tasks": [task()], "minAvailable": 2}, "should not be greater than total replicas"),
    ],
)
@virtual
async def test_an_impossible_job_is_told_so_and_keeps_nobody_else(spec: Obj, words: str, tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.cluster.create(VOLCANO_JOBS, {"metadata": {"name": "odd"}, "spec": spec})
        await submit(scene, task(), name="even")
        await scene.cluster.until(lambda: scene.job_is("even", "Running"))
        assert any(words in message for _, message in await scene.said("odd"))
        assert set(await scene.pods()) == {"even-worker-0"}
