"""What `shoal run` may do is what it does: no more is granted than the table says, and no less than its parts need."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from build.live_schedulers import add_node, is_bound, pod
from build.queue_admission import add_flavor, add_queue
from build.readers import FixedReader
from build.ruled_clusters import KINDS, ruled_cluster
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import LOCAL_QUEUES, VOLCANO_JOBS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import (
    DEFINITIONS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    VOLUME_CLAIMS,
    VOLUMES,
    Kind,
)
from shoal.client.port import Patch
from shoal.client.presence import KAI, KUEUE, VOLCANO, Sign
from shoal.client.refusals import ForbiddenError
from shoal.controllers.advising.advised_kinds import RESOURCES
from shoal.controllers.gatekeeping.held_kinds import HoldingRules
from shoal.controllers.gatekeeping.hooks import HOOKS, NAME
from shoal.controllers.gatekeeping.policies import BINDINGS, POLICIES, queue_policies, rendezvous_policy
from shoal.controllers.queued_jobs.job_kind import QueuedJobKind
from shoal.controllers.queued_jobs.job_kinds import COMMANDS, JOB_KINDS
from shoal.data.permissions import PARTS, POD_AUTOSCALING
from shoal.embedded.apiserver.bootstrap.default_roles import default_roles
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.foreign.converting import kueue_definitions
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.rbac import Rbac
from shoal.embedded.controllers.jobs.controller import job_controller
from shoal.install.objects.permissions import RoleSubjects, manifests

_QUEUED = {"kueue.x-k8s.io/queue-name": "cq"}


def _job(name: str, pods: int = 2) -> Obj:
    containers = [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"schedulerName": "shoal", "restartPolicy": "Never", "containers": containers}
    body = {"parallelism": pods, "completions": pods, "template": {"spec": spec}}
    return {"metadata": {"name": name, "labels": dict(_QUEUED)}, "spec": body}


_VOLCANO: Obj = {
    "minAvailable": 1,
    "schedulerName": "volcano",
    "plugins": {"ssh": [], "svc": [], "env": []},
    "tasks": [
        {"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "pause"}]}}},
    ],
}


async def has_pods(cluster: SmallCluster, start: str) -> bool:
    return any(one["metadata"]["name"].startswith(start) for one in await cluster.pods())


@virtual
async def test_all_parts_do_their_work_as_the_user_of_the_embedded_server_and_are_refused_nothing(
    tmp_path: Path,
) -> None:
    async with ruled_cluster(tmp_path, "kueue", "jobset", "volcano", "lws") as ruled:
        cluster = ruled.cluster
        cluster.start(job_controller)
        ruled.start_shoal("system:shoal")
        await add_node(cluster, "n1", gpus=8)
        await add_flavor(cluster)
        await add_queue(cluster)

        async def are_policies_there() -> bool:
            return len(await cluster.all(POLICIES)) >= 5

        await cluster.until(are_policies_there)
        await cluster.create(JOBS, _job("train"))
        await cluster.create(PODS, {**pod("single", cpu="1"), "metadata": {"name": "single", "labels": dict(_QUEUED)}})
        await cluster.create(PODS, pod("plain", gpus=2))

        async def runs() -> bool:
            bound = [one for one in await cluster.pods() if one["spec"].get("nodeName")]
            return len(bound) == 4

        await cluster.until(runs)
        # The higher one takes the whole node: somebody is asked to go.
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        await cluster.create(PODS, pod("urgent", gpus=8, priorityClassName="high"))

        async def is_asked_to_yield() -> bool:
            there = {one["metadata"]["name"]: one for one in await cluster.pods()}
            return "plain" not in there or "deletionTimestamp" in there["plain"]["metadata"]

        await cluster.until(is_asked_to_yield)
        workloads = await cluster.all(WORKLOADS)
        queued = next(one for one in workloads if one["metadata"]["name"].startswith("job-train"))
        made = await cluster.create(VOLCANO_JOBS, {"metadata": {"name": "vj"}, "spec": _VOLCANO})
        await cluster.until(lambda: has_pods(cluster, "vj-"))
        whom = {"name": "vj", "uid": made["metadata"]["uid"], "controller": True}
        command = {"target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", **whom}}
        await cluster.create(COMMANDS, {"metadata": {"name": "stop"}, "action": "AbortJob", **command})
        evict = {"spec": {"active": False}}
        await cluster.patch(WORKLOADS, queued["metadata"]["name"], evict)

        async def is_suspended() -> bool:
            return bool((await cluster.get(JOBS, "train"))["spec"].get("suspend"))

        await cluster.until(is_suspended)
        await cluster.delete(JOBS, "train")
        await cluster.pass_time(60)
        assert ruled.refused == []


@virtual
async def test_who_runs_the_scheduler_alone_places_pods_and_cannot_touch_a_job(tmp_path: Path) -> None:
    async with ruled_cluster(tmp_path) as ruled:
        cluster = ruled.cluster
        await ruled.apply(manifests(("scheduler",), RoleSubjects(user="ann")))
        ruled.start_scheduler("ann")
        await add_node(cluster, "n1", gpus=8)
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a"))
        await cluster.pass_time(30)
        assert ruled.refused == []
        await cluster.create(JOBS, _job("train"))
        with pytest.raises(ForbiddenError):
            await ruled.way_in("ann").patch(JOBS, "default", "train", Patch("merge", {"spec": {"suspend": True}}))


@virtual
async def test_a_rule_that_lacks_is_told_once_with_the_rule_and_the_command(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ruled_cluster(tmp_path) as ruled:
        cluster = ruled.cluster
        objects = manifests(("scheduler",), RoleSubjects(user="ann"))
        for role in objects:
            if "rules" in role:
                role["rules"] = [rule for rule in role["rules"] if rule["resources"] != ["pods/binding"]]
        await ruled.apply(objects)
        with caplog.at_level(logging.WARNING, "shoal"):
            ruled.start_scheduler("ann")
            await add_node(cluster, "n1", gpus=8)
            await cluster.create(PODS, pod("a", gpus=1))
            await cluster.create(PODS, pod("b", gpus=1))
            await cluster.pass_time(120)
        assert len(ruled.noted.refused) > 2
        assert ruled.refused == ["create pods/binding. default"]
        told = [one.message for one in caplog.records if one.name == "shoal" and "RBAC" in one.message]
        assert told == [
            (
                "RBAC does not let ann create pods/binding in namespace default: the missing rule is "
                '{apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]}; '
                "all that shoal run needs: shoal permissions | kubectl apply -f -"
            )
        ]


@virtual
async def test_what_is_granted_later_needs_no_restart_and_is_not_missing_any_more(tmp_path: Path) -> None:
    async with ruled_cluster(tmp_path) as ruled:
        cluster = ruled.cluster
        ruled.start_scheduler("ann")
        await cluster.pass_time(5)
        assert len(ruled.noted) > 10
        await ruled.apply(manifests(("scheduler",), RoleSubjects(user="ann")))
        await add_node(cluster, "n1", gpus=8)
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a"), within_s=300)
        assert len(ruled.noted) == 0


def test_every_object_is_one_that_can_be_applied_and_every_role_is_bound() -> None:
    objects = manifests(tuple(PARTS))
    assert all(one["kind"] in KINDS for one in objects)
    named = {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects}
    assert len(named) == len(objects)
    for one in objects:
        if one["kind"] in {"ClusterRole", "Role"}:
            binding = (f"{one['kind']}Binding", one["metadata"].get("namespace"), one["metadata"]["name"])
            assert binding in named


def test_nobody_may_do_everything_or_read_all_secrets() -> None:
    # This part reads the Secrets that triggers name, with an account of its own.
    for one in manifests(tuple(part for part in PARTS if part != POD_AUTOSCALING)):
        for rule in one.get("rules", ()):
            assert "*" not in (*rule["verbs"], *rule["resources"], *rule["apiGroups"])
            if "secrets" in rule["resources"] and rule["verbs"] != ["create"]:
                assert (one["kind"], rule["resourceNames"]) == ("Role", ["shoal-webhook-papers"])


_ALL = Actor("system:shoal", ("system:authenticated",))


def _may(verb: str, kind: Kind, subresource: str = "", name: str = "x") -> bool:
    rbac = Rbac(FixedReader(*(seed.obj for seed in default_roles())))
    namespace = "default" if kind.is_namespaced else ""
    asked = RequestInfo(verb, kind.group, kind.version, kind.plural, subresource, namespace, name)
    return rbac.allows(_ALL, asked).allowed


@pytest.mark.parametrize("sign", [KUEUE, VOLCANO, KAI], ids=lambda sign: sign.project)
def test_whether_a_project_runs_is_asked_by_the_names_that_it_has(sign: Sign) -> None:
    assert all(_may("get", LEASES, name=name) for name in sign.leases)
    assert all(_may("get", DEPLOYMENTS, name=name) for name in sign.deployments)
    assert not _may("get", LEASES)
    assert not _may("list", LEASES)


def test_only_the_definitions_that_lead_here_may_be_changed() -> None:
    names = {one["metadata"]["name"] for one in kueue_definitions()}
    assert len(names) > 5
    assert all(_may("patch", DEFINITIONS, name=name) for name in names)
    assert not _may("patch", DEFINITIONS, name="certificates.cert-manager.io")


@pytest.mark.parametrize("verb", ["patch", "update", "delete"])
def test_only_policies_and_webhooks_of_our_own_may_be_changed(verb: str) -> None:
    pairs = [*queue_policies(HoldingRules(), LOCAL_QUEUES), rendezvous_policy()]
    for kind in (POLICIES, BINDINGS):
        assert all(_may(verb, kind, name=pair.name) for pair in pairs)
        assert not _may(verb, kind)
    assert _may(verb, HOOKS, name=NAME)
    assert not _may(verb, HOOKS)


@pytest.mark.parametrize("row", JOB_KINDS, ids=lambda row: row.kind.name)
def test_every_kind_of_job_can_be_read_stopped_and_told_of(row: QueuedJobKind) -> None:
    assert all(_may(verb, row.kind) for verb in ("get", "list", "watch", "update", "patch"))
    assert all(_may(verb, row.kind, "status") for verb in ("get", "patch", "update"))
    assert _may("update", row.kind, "finalizers"), "Workloads are owned by jobs, where owners are guarded"
    assert all(_may(verb, kind) for kind in row.refers_to for verb in ("get", "list", "watch"))
    assert row.suspended_by != "command" or _may("create", COMMANDS)


@pytest.mark.parametrize("kind", sorted(one.kind for one in RESOURCES.values()))
def test_whatever_the_advisor_looks_at_can_be_read(kind: Kind) -> None:
    assert all(_may(verb, kind) for verb in ("get", "list", "watch"))


def test_the_allocation_of_a_claim_can_be_written_where_it_has_a_rule_of_its_own() -> None:
    assert all(_may("update", RESOURCE_CLAIMS, subresource) for subresource in ("", "status", "binding"))
    assert all(_may("update", kind) for kind in (VOLUMES, VOLUME_CLAIMS))
    assert all(_may("create", PODS, subresource) for subresource in ("binding", "eviction"))


def test_configmaps_are_read_by_the_names_that_are_needed() -> None:
    lines = [line for part in ("scheduler", "queues", "jobs", "pods") for line in PARTS[part]]
    assert {line for line in lines if "configmaps" in line} == {
        "get,list,watch configmaps =kueue-manager-config",
        "get,list,watch configmaps =shoal-budgets",
    }


def test_the_admission_rules_read_no_secrets() -> None:
    assert [line for line in PARTS["gatekeeper"] if "secrets" in line] == []
