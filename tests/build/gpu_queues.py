"""Fleets of GPUs behind queues, as manifests in few words: quotas are whole GPUs of flavors."""

from __future__ import annotations

import json
from typing import Any

from build.manifests import Object, job, thing
from build.queue_manifests import KUEUE, QUEUE, condition, local_queue
from shoal.api.decode import Document, read
from shoal.cli.manifests import loaded_of, rounds_of
from shoal.sim.queue_rounds import QueueRecord, QueueRounds

GPU = "nvidia.com/gpu"
RECLAIMS = {"reclaimWithinCohort": "Any"}
BY_PRIORITY = {"withinClusterQueue": "LowerPriority"}


def gpus(
    nominal: int, borrow: int | None = None, lend: int | None = None, flavor: str = "f"
) -> tuple[str, dict[str, Any]]:
    """Quota of one flavor."""
    quota: dict[str, Any] = {"name": GPU, "nominalQuota": nominal}
    quota |= {} if borrow is None else {"borrowingLimit": borrow}
    quota |= {} if lend is None else {"lendingLimit": lend}
    return flavor, quota


def gpu_queue(
    name: str, *quotas: tuple[str, dict[str, Any]], cohort: str = "", preemption: Object | None = None, **spec: Any
) -> list[Object]:
    """A cluster queue, flavors in the order in which they are tried, and the local queue `<name>/q` in front of it."""
    flavors = [{"name": flavor, "resources": [quota]} for flavor, quota in quotas]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    more: Object = {"cohortName": cohort} if cohort else {}
    more |= {"preemption": preemption} if preemption else {}
    made = thing(KUEUE, "ClusterQueue", name, spec={"resourceGroups": groups, "namespaceSelector": {}, **more, **spec})
    return [made, local_queue(f"{name}/q", name)]


def gpu_job(name: str, pods: int, gpus_each: int, at: str = "2026-01-01T00:00:00Z", **more: Any) -> Object:
    """A suspended job in the queue `q` of its namespace."""
    labels = {QUEUE: "q", **more.pop("labels", {})}
    made = job(name, pods, gpus_each, labels=labels, suspend=True, **more)
    made["metadata"]["creationTimestamp"] = at
    return made


def gpu_workload(
    name: str,
    pods: int,
    gpus_each: int,
    on: str = "",
    *,
    priority: int = 0,
    at: str = "2026-01-01T00:00:00Z",
    topology: Object | None = None,
    lasts: str = "",
    **pod_set: Any,
) -> Object:
    """Of one pod set `main`. `on` is the flavor in which it is admitted to the cluster queue of its namespace."""
    namespace = name.partition("/")[0]
    template: Object = {"spec": {"containers": [{"name": "c", "resources": {"requests": {GPU: gpus_each}}}]}}
    spec = {
        "queueName": "q",
        "priority": priority,
        "podSets": [{"name": "main", "count": pods, "template": template, **pod_set}],
    }
    made = thing(KUEUE, "Workload", name, spec=spec)
    made["metadata"]["creationTimestamp"] = at
    if lasts:
        made["metadata"]["annotations"] = {"shoal.dev/expected-duration": lasts}
    if on:
        assigned: Object = {"name": "main", "count": pods, "flavors": {GPU: on}}
        assigned["resourceUsage"] = {GPU: pods * gpus_each}
        assigned |= {"topologyAssignment": topology} if topology else {}
        conditions = [condition("QuotaReserved", at=at), condition("Admitted", at=at)]
        made["status"] = {
            "admission": {"clusterQueue": namespace, "podSetAssignments": [assigned]},
            "conditions": conditions,
        }
    return made


def documents_of(*objects: Object) -> list[Document]:
    return read(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), "world.json")


def rounds_on(*objects: Object, keep_terminating: bool = False) -> QueueRounds:
    """The rounds of a world with queues."""
    rounds = rounds_of(loaded_of(documents_of(*objects)), 42, keep_terminating=keep_terminating)
    assert isinstance(rounds, QueueRounds)
    return rounds


class NotQuietError(AssertionError):
    """Rounds that do not come to rest."""


def lived(rounds: QueueRounds, most: int = 50) -> list[QueueRecord]:
    """Its rounds up to the quiet one."""
    records = []
    for _ in range(most):
        records.append(rounds.round())
        if records[-1].is_quiet:
            return records
    raise NotQuietError(f"not quiet after {most} rounds")


def admitted_in(records: list[QueueRecord]) -> list[str]:
    return [each.workload for record in records for each in record.admitted]


def placed_in(records: list[QueueRecord]) -> dict[str, str]:
    """Pod -> node, the last one."""
    return {each.pod: each.node for record in records for each in record.placed}


def reasons(record: QueueRecord) -> dict[str, str]:
    """Why each waits."""
    return {each.workload: each.why.value for each in record.waiting}
