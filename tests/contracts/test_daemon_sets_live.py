"""DaemonSets: one pod for each node that may have it.

Nodes here are objects of the test, and no kubelet is behind them.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import create, living, name_of, until, until_items, until_pods
from build.live_workloads import images, own_node, template, workload
from build.played_pods import everything_runs, run

pytestmark = pytest.mark.needs("controllers")
NEXT = "registry.k8s.io/pause:3.9"


def at(api: Api) -> str:
    return api.group("apps/v1", "daemonsets", "agent")


async def make(api: Api, labels: dict[str, str], **spec: Any) -> Obj:
    held = template("agent", nodeSelector=labels, **spec.pop("pod", {}))
    return await create(api, workload("DaemonSet", "agent", template=held, **spec), "daemonsets")


def node_of(pod: Obj) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    assert (field["key"], field["operator"]) == ("metadata.name", "In")
    found: str = field["values"][0]
    return found


def unique() -> dict[str, str]:
    return {"example.com/fleet": uuid4().hex[:12]}


async def test_every_node_that_fits_has_one_pod(api: Api) -> None:
    labels = unique()
    async with own_node(api, labels) as first, own_node(api, labels) as second, own_node(api):
        await make(api, labels)
        pods = await until_pods(api, 2)
        assert sorted(map(node_of, pods)) == sorted((first, second))
        tolerated = {(one["key"], one["effect"]) for one in pods[0]["spec"]["tolerations"]}
        assert {
            ("node.kubernetes.io/not-ready", "NoExecute"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
            ("node.kubernetes.io/disk-pressure", "NoSchedule"),
            ("node.kubernetes.io/memory-pressure", "NoSchedule"),
            ("node.kubernetes.io/pid-pressure", "NoSchedule"),
            ("node.kubernetes.io/unschedulable", "NoSchedule"),
        } <= tolerated
        labels_of = pods[0]["metadata"]["labels"]
        assert labels_of["app"] == "agent"
        assert "controller-revision-hash" in labels_of
        assert labels_of["pod-template-generation"] == "1"
        await run(api, name_of(pods[0]))
        found = await until(api, at(api), lambda one: one["status"].get("numberReady") == 1)
        status = found["status"]
        assert (status["desiredNumberScheduled"], status["currentNumberScheduled"]) == (2, 2)
        assert (status["numberAvailable"], status["numberUnavailable"], status["numberMisscheduled"]) == (1, 1, 0)
        assert status["updatedNumberScheduled"] == 2


async def test_a_node_that_joins_gets_a_pod_and_one_that_changes_loses_it(api: Api) -> None:
    labels = unique()
    async with own_node(api, labels) as first:
        await make(api, labels)
        await until_pods(api, 1)
        async with own_node(api) as second:
            (await api.patch(f"/api/v1/nodes/{second}", {"metadata": {"labels": labels}})).ok()
            # A change of a node counts for the pods that are bound to it.
            for pod in await until_pods(api, 2):
                target = {"apiVersion": "v1", "kind": "Node", "name": node_of(pod)}
                binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name_of(pod)}, "target": target}
                (await api.post(api.core("pods", f"{name_of(pod)}/binding"), binding)).ok(201)
            await until(api, at(api), lambda one: one["status"].get("currentNumberScheduled") == 2)
            (await api.patch(f"/api/v1/nodes/{first}", {"metadata": {"labels": {"example.com/fleet": None}}})).ok()
            (left,) = await until_pods(api, 1)
            assert node_of(left) == second


async def test_a_taint_keeps_pods_away_that_do_not_tolerate_it_and_cordons_do_not(api: Api) -> None:
    labels = unique()
    taint = {"key": "example.com/no", "effect": "NoSchedule"}
    async with own_node(api, labels, taints=[taint]) as tainted, own_node(api, labels, unschedulable=True) as cordoned:
        await make(api, labels)
        (pod,) = await until_pods(api, 1)
        assert node_of(pod) == cordoned
        tolerations = [{"key": "example.com/no", "operator": "Exists"}]
        (await api.patch(at(api), {"spec": {"template": {"spec": {"tolerations": tolerations}}}})).ok()
        pods = await until_items(
            api, api.core("pods"), lambda found: tainted in {node_of(one) for one in living(found)}
        )
        assert pods


async def test_an_update_replaces_pods_node_by_node(api: Api) -> None:
    labels = unique()
    async with own_node(api, labels), own_node(api, labels), everything_runs(api):
        await make(api, labels)
        await until(api, at(api), lambda one: one["status"].get("numberAvailable") == 2)
        image = {"spec": {"containers": [{"name": "main", "image": NEXT}]}}
        (await api.patch(at(api), {"spec": {"template": image}})).ok()
        await until(
            api,
            at(api),
            lambda one: (
                one["status"]["observedGeneration"] == 2
                and one["status"].get("updatedNumberScheduled") == 2
                and one["status"].get("numberAvailable") == 2
            ),
        )
        assert images(await until_pods(api, 2)) == [NEXT, NEXT]
        revisions = (await api.get(api.group("apps/v1", "controllerrevisions"))).ok()["items"]
        assert sorted(one["revision"] for one in revisions) == [1, 2]


async def test_no_pod_where_nothing_fits(api: Api) -> None:
    await make(api, unique())
    found = await until(api, at(api), lambda one: one.get("status", {}).get("observedGeneration") == 1)
    assert found["status"]["desiredNumberScheduled"] == 0
