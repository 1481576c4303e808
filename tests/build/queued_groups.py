"""Pod groups of every ecosystem with a queue, under the admission of queues and the controller of queued pods.

    async with group_cluster(tmp_path, cpu="3") as groups:
        await groups.group("volcano", "train", minimum=2)
        await groups.member("volcano", "train", "a")

The pods name Shoal's scheduler, and the nodes have more capacity than the queue has quota.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from build.fake_admission import condition
from build.foreign_kinds import established
from build.live_schedulers import add_node
from build.queue_admission import add_flavor, add_queue, start_admission
from build.queued_pod_scenarios import GROUP, TOTAL, QueuedPodScenario, queued_pods
from build.small_clusters import SmallCluster, small_cluster
from shoal.client.ecosystem_kinds import (
    CLUSTER_QUEUES,
    GROUP_POD_GROUPS,
    GROUP_WORKLOADS,
    KAI_POD_GROUPS,
    KUEUE,
    LIGHT_POD_GROUPS,
    VOLCANO_JOBS,
    VOLCANO_POD_GROUPS,
    WORKLOADS,
)
from shoal.client.kind import DEFINITIONS, PODS, Kind
from shoal.client.port import Api, Patch
from shoal.client.refusals import AlreadyExistsError
from shoal.controllers.gatekeeping.held_kinds import QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.holding import held
from shoal.embedded.apiserver.foreign.definitions import definitions

Obj = dict[str, Any]
QUEUE = "cq"


class GroupStyle(NamedTuple):
    """How one ecosystem writes a group down."""

    kind: Kind | None
    spec: Callable[[int], Obj]
    """The spec of the group object for that minimum."""
    member: Callable[[str, int], Obj]
    """What is merged into a pod of the group of that name and minimum."""


def _in(field: str, key: str) -> Callable[[str, int], Obj]:
    return lambda name, _: {"metadata": {field: {key: name}}}


def _gang(minimum: int) -> Obj:
    return {"gang": {"minCount": minimum}}


STYLES: dict[str, GroupStyle] = {
    "volcano": GroupStyle(
        VOLCANO_POD_GROUPS, lambda least: {"minMember": least}, _in("annotations", "scheduling.k8s.io/group-name")
    ),
    "kai": GroupStyle(KAI_POD_GROUPS, lambda least: {"minMember": least}, _in("annotations", "pod-group-name")),
    "scheduler-plugins": GroupStyle(
        LIGHT_POD_GROUPS, lambda least: {"minMember": least}, _in("labels", "scheduling.x-k8s.io/pod-group")
    ),
    "kubernetes": GroupStyle(
        GROUP_POD_GROUPS,
        lambda least: {"schedulingPolicy": _gang(least)},
        lambda name, _: {"spec": {"schedulingGroup": {"podGroupName": name}}},
    ),
    "kubernetes-workload": GroupStyle(
        GROUP_WORKLOADS,
        lambda least: {"podGroups": [{"name": "workers", "policy": _gang(least)}]},
        lambda name, _: {"spec": {"workloadRef": {"name": name, "podGroup": "workers"}}},
    ),
    "labels": GroupStyle(
        None,
        lambda _: {},
        lambda name, least: {
            "metadata": {
                "labels": {
                    "pod-group.scheduling.sigs.k8s.io/name": name,
                    "pod-group.scheduling.sigs.k8s.io/min-available": str(least),
                }
            }
        },
    ),
    "kueue": GroupStyle(
        None,
        lambda _: {},
        lambda name, least: {"metadata": {"labels": {GROUP: name}, "annotations": {TOTAL: str(least)}}},
    ),
}
"""The styles; in `labels` and `kueue` the pods carry the number themselves."""
LIVE_STYLES = [name for name in STYLES if name != "kubernetes-workload"]
"""The embedded server has no field `workloadRef`, as servers since Kubernetes 1.36."""


class QueuedGroups(QueuedPodScenario):
    """A cluster with queued groups, and what tests do and see there."""

    def __init__(self, cluster: SmallCluster, api: Api) -> None:
        super().__init__(cluster)
        self._api = api
        self.process = start_admission(cluster, api=api)
        cluster.start(queued_pods, api=api)

    def restart(self) -> None:
        """Start a new scheduling loop, after the one before was killed."""
        self.process = start_admission(self.cluster, api=self._api)

    async def group(self, style: str, name: str, minimum: int, **spec: Any) -> None:
        """Create the group object, where the style has one."""
        chosen = STYLES[style]
        if chosen.kind is not None:
            await self.cluster.create(chosen.kind, group_object(style, name, minimum, **spec))

    async def join(self, style: str, group: str, name: str, minimum: int = 2, **more: Any) -> Obj:
        """Create a pod of the group as the admission policies change it; `cpu`, `queue`, and fields of its spec."""
        obj = member_object(style, group, name, minimum, **more)
        return await self.cluster.create(PODS, held(obj, ("", "Pod"), HoldingRules(), lambda: False))

    async def join_if_new(self, style: str, group: str, name: str, minimum: int) -> bool:
        """Create the pod unless one of its name is still ending; returns whether it was created."""
        try:
            await self.join(style, group, name, minimum)
        except AlreadyExistsError:
            return False
        return True

    async def set_quota(self, cpu: int) -> None:
        queue = await self.cluster.get(CLUSTER_QUEUES, QUEUE)
        queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = str(cpu)
        await self.cluster.patch(CLUSTER_QUEUES, QUEUE, {"spec": queue["spec"]})
        await self.cluster.pass_time(2)

    async def bound(self) -> set[str]:
        """Pods on nodes that have not ended."""
        return {
            pod["metadata"]["name"]
            for pod in await self.cluster.pods()
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed")
        }

    async def until_bound(self, *names: str) -> None:
        async def are_bound() -> bool:
            return await self.bound() == set(names)

        await self.cluster.until(are_bound, 120)

    async def admitted(self) -> dict[str, int]:
        """Pods for which quota is reserved, by the names of the Workloads that hold it."""
        found = {}
        for one in await self.cluster.all(WORKLOADS):
            admission = (one.get("status") or {}).get("admission")
            if admission and condition(one, "Finished").get("status") != "True":
                found[one["metadata"]["name"]] = sum(each["count"] for each in admission["podSetAssignments"])
        return found

    async def used(self) -> str:
        """The quota in use."""
        status = (await self.cluster.get(CLUSTER_QUEUES, QUEUE))["status"]
        total: str = status["flavorsReservation"][0]["resources"][0]["total"]
        return total

    async def pod_reasons(self, name: str) -> list[tuple[str, str]]:
        """Reason and message of the Events about the pod."""
        return [(event["reason"], event["message"]) for event in await self.cluster.events(name)]

    async def succeed(self, *names: str) -> None:
        await self.phase("Succeeded", *names)

    async def end_deleted(self) -> None:
        """Pods on nodes that are being deleted end, as a kubelet ends them."""
        for pod in await self.cluster.pods():
            if pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") not in ("Succeeded", "Failed"):
                await self.vanish(pod["metadata"]["name"])


def group_object(style: str, name: str, minimum: int, **spec: Any) -> Obj:
    """The group object; `spec`: further fields of its spec."""
    kind = STYLES[style].kind
    assert kind is not None, f"{style} has no group object"
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name},
        "spec": {**STYLES[style].spec(minimum), **spec},
    }


def member_object(
    style: str, group: str, name: str, minimum: int = 2, *, cpu: str = "1", queue: str = QUEUE, **more: Any
) -> Obj:
    """A pod of the group; `more`: labels, annotations, owners, and fields of its spec."""
    named = STYLES[style].member(group, minimum)
    meta, spec = named.get("metadata", {}), named.get("spec", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {QUEUE_LABEL: queue, **meta.get("labels", {}), **more.pop("labels", {})},
            "annotations": {**meta.get("annotations", {}), **more.pop("annotations", {})},
            "ownerReferences": more.pop("owners", []),
        },
        "spec": {
            "schedulerName": "shoal",
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
            **more,
        },
    }


@asynccontextmanager
async def group_cluster(
    folder: Path, cpu: str = "3", nodes: int = 2, api_of: Callable[[SmallCluster], Api] | None = None, **queue: Any
) -> AsyncIterator[QueuedGroups]:
    """Nodes of eight cores, a queue of that many, and all kinds of groups. `api_of`: the API of the controllers;
    `queue`: fields of the ClusterQueue."""
    wanted = {kind.group for kind, *_ in STYLES.values() if kind is not None} | {KUEUE, VOLCANO_JOBS.group}
    async with small_cluster(folder) as cluster:
        for definition in definitions():
            if definition["spec"]["group"] in wanted:
                await cluster.create(DEFINITIONS, definition)
        await cluster.create(DEFINITIONS, _unchecked_definition(GROUP_POD_GROUPS))
        await established(cluster)
        for index in range(nodes):
            await add_node(cluster, f"n{index}")
        await add_flavor(cluster)
        await add_queue(cluster, QUEUE, cpu, **queue)
        groups = QueuedGroups(cluster, api_of(cluster) if api_of is not None else cluster.api)
        await cluster.pass_time(5)
        yield groups


def _unchecked_definition(kind: Kind) -> Obj:
    """These APIs are off by default, as in Kubernetes: a definition stands in for them."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "subresources": {"status": {}}}
    meta = {
        "name": f"{kind.plural}.{kind.group}",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1"},
    }
    names = {
        "plural": kind.plural,
        "kind": kind.name,
        "singular": kind.name.lower(),
        "listKind": f"{kind.name}List",
    }
    spec = {
        "group": kind.group,
        "scope": "Namespaced",
        "names": names,
        "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
    }
    return {"metadata": meta, "spec": spec}


async def resize_group(groups: QueuedGroups, style: str, name: str, minimum: int) -> None:
    """Change the minimum of the group object."""
    kind = STYLES[style].kind
    assert kind is not None, f"{style} has no group object"
    patch = Patch("merge", {"spec": STYLES[style].spec(minimum)})
    await groups.cluster.api.patch(kind, "default", name, patch)
