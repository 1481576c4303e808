"""Which pods a Job replaces, and when: those on their way out, those it took in.

A pod that is deleted has failed, and after a failure a Job waits ten seconds: that is why some of these are slow.
"""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import NO_SCHEDULER, container, make_pod
from build.cluster_api import Api, Obj
from build.live_waits import create, is_true, living, name_of, until, until_items, until_pods
from build.live_workloads import own_node
from build.played_pods import bury, end, run

pytestmark = pytest.mark.needs("controllers")


async def make(api: Api, pod: Obj | None = None, labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    held = {"schedulerName": NO_SCHEDULER, "restartPolicy": "Never", "containers": [container()], **(pod or {})}
    whole = {"template": {"metadata": {"labels": labels or {}}, "spec": held}, **spec}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": whole}
    return await create(api, body, "jobs")


def at(api: Api) -> str:
    return api.group("batch/v1", "jobs", "train")


@pytest.mark.slow
async def test_a_pod_that_leaves_is_replaced_while_it_is_still_there(api: Api) -> None:
    async with own_node(api) as node:
        await make(api, {"nodeName": node}, backoffLimit=6)
        (pod,) = await until_pods(api, 1)
        await run(api, name_of(pod))
        (await api.delete(api.core("pods", name_of(pod)))).ok()
        found = await until_items(api, api.core("pods"), lambda pods: len(pods) == 2)
        assert [name_of(one) for one in found if "deletionTimestamp" in one["metadata"]] == [name_of(pod)]
        await until(api, at(api), lambda one: one["status"].get("active") == 1)
        for one in found:
            await bury(api, name_of(one))


@pytest.mark.slow
async def test_a_pod_that_leaves_is_replaced_when_it_is_over_where_that_is_asked(api: Api) -> None:
    async with own_node(api) as node:
        await make(api, {"nodeName": node}, podReplacementPolicy="Failed")
        (pod,) = await until_pods(api, 1)
        await run(api, name_of(pod))
        (await api.delete(api.core("pods", name_of(pod)))).ok()
        found = await until(api, at(api), lambda one: one["status"].get("terminating") == 1)
        assert "active" not in found["status"]
        assert len((await api.get(api.core("pods"))).ok()["items"]) == 1
        await end(api, name_of(pod), 143)
        await until(api, at(api), lambda one: one["status"].get("failed") == 1)
        await bury(api, name_of(pod))
        await until_pods(api, 1)
        assert living((await api.get(api.core("pods"))).ok()["items"])


async def test_a_job_with_a_selector_by_hand_takes_in_pods_that_fit(api: Api) -> None:
    labels = {"app": "mine"}
    await make_pod(api, "found", labels=labels, restartPolicy="Never")
    made = await make(
        api, None, labels, parallelism=2, completions=2, manualSelector=True, selector={"matchLabels": labels}
    )
    pod = await until(api, api.core("pods", "found"), lambda one: "ownerReferences" in one["metadata"])
    assert pod["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    pods = await until_pods(api, 2)
    for one in pods:
        await end(api, name_of(one))
    await until(api, at(api), lambda one: is_true(one, "Complete"))


async def test_a_pod_that_somebody_deletes_after_it_succeeded_still_counts(api: Api) -> None:
    await make(api, None, parallelism=1, completions=2)
    (pod,) = await until_pods(api, 1)
    await end(api, name_of(pod))
    await api.delete(api.core("pods", name_of(pod)))
    await until(api, at(api), lambda one: one["status"].get("succeeded") == 1)
    (second,) = [one for one in await until_pods(api, 1) if name_of(one) != name_of(pod)]
    await end(api, name_of(second))
    done = await until(api, at(api), lambda one: is_true(one, "Complete"))
    assert done["status"]["succeeded"] == 2
