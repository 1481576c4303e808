"""The objects of a team count what they are meant to count, refuse no valid pod, and pass every rule of lint."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from shoal.api.plain_objects import PlainObject, PlainObjects
from shoal.policy.admission.limit_ranges import complete, faults_of, set_defaults
from shoal.policy.catalogue import faults
from shoal.policy.lint import lint_files
from shoal.policy.object_set import ObjectSet
from shoal.policy.tenants.attempts import pod
from shoal.policy.tenants.grants import QuotaGrant, grant_of
from shoal.policy.tenants.objects import TeamSurroundings, shared_objects, team_objects
from shoal.policy.tenants.queue_grants import former_queue
from shoal.policy.tenants.team import Team, read_team
from shoal.units.errors import Where

Obj = dict[str, Any]
FULL = {
    "quota": {
        "gpus": 16,
        "resources": {"nvidia.com/mig-1g.10gb": 7},
        "cpu": "128",
        "memory": "1Ti",
        "storage": "2Ti",
        "claims": 10,
        "pods": 100,
    },
    "members": {"admins": ["user:ann"], "developers": ["devs", "serviceaccount:ci/runner"], "viewers": ["all"]},
    "network": {
        "allowFrom": ["gateway"],
        "egress": [{"cidr": "10.9.0.0/16", "ports": [6379]}],
        "webhookPorts": [9443],
    },
    "queue": {"cohort": "shared-gpus", "borrow": 4, "weight": 2},
    "budgetPerMonth": "20000.50",
}


def made(spec: Obj, **around: Any) -> list[Obj]:
    return team_objects(_team(spec), TeamSurroundings(**around))


def _team(spec: Obj) -> Team:
    return read_team({"apiVersion": "shoal.dev/v1alpha1", "kind": "Team", "metadata": {"name": "team-a"}, "spec": spec})


def _of(objects: list[Obj], kind: str, name: str = "") -> Obj:
    return next(obj for obj in objects if obj["kind"] == kind and name in ("", obj["metadata"]["name"]))


def test_the_quota_counts_requests_and_never_limits_of_devices() -> None:
    hard = _of(made(FULL), "ResourceQuota", "team-quota")["spec"]["hard"]
    assert hard == {
        "requests.nvidia.com/gpu": "16",
        "requests.nvidia.com/mig-1g.10gb": "7",
        "requests.nvidia.com/gpu.shared": "0",
        "requests.cpu": "128",
        "requests.memory": "1Ti",
        "requests.storage": "2Ti",
        "persistentvolumeclaims": "10",
        "pods": "100",
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }


def test_every_other_name_of_gpus_in_the_cluster_is_closed() -> None:
    found = made(FULL, advertised=["nvidia.com/mig-3g.40gb", "nvidia.com/gpu"], device_classes=["gpu.nvidia.com"])
    hard = _of(found, "ResourceQuota", "team-quota")["spec"]["hard"]
    assert hard["requests.nvidia.com/mig-3g.40gb"] == "0"
    assert hard["gpu.nvidia.com.deviceclass.resource.k8s.io/devices"] == "0"
    assert hard["requests.nvidia.com/gpu"] == "16"


ACCELERATORS = ("amd.com/gpu", "aws.amazon.com/neuroncore", "google.com/tpu", "gpu.intel.com/xe", "habana.ai/gaudi")


@pytest.mark.parametrize("name", ACCELERATORS)
def test_accelerators_of_every_vendor_are_closed_unless_the_team_names_them(name: str) -> None:
    around = {"advertised": [*ACCELERATORS, "nvidia.com/gpu", "rdma/hca"]}
    found = made({"quota": {"gpus": 8}}, **around)
    assert _of(found, "ResourceQuota", "team-quota")["spec"]["hard"][f"requests.{name}"] == "0"
    assert name not in _queued(found)
    assert "rdma/hca" in _queued(found)
    named = made({"quota": {"gpus": 8, "resources": {name: 4}}}, **around)
    assert _of(named, "ResourceQuota", "team-quota")["spec"]["hard"][f"requests.{name}"] == "4"
    assert _queued(named)[name] == "4"


def test_a_resource_that_the_team_names_has_one_quota_in_the_queue() -> None:
    found = made({"quota": {"gpus": 8, "resources": {"rdma/hca": 2}}}, advertised=["nvidia.com/gpu", "rdma/hca"])
    group = _of(found, "ClusterQueue")["spec"]["resourceGroups"][0]
    assert group["coveredResources"].count("rdma/hca") == 1
    assert _queued(found)["rdma/hca"] == "2"


def _queued(objects: list[Obj]) -> dict[str, str]:
    flavor = _of(objects, "ClusterQueue")["spec"]["resourceGroups"][0]["flavors"][0]
    return {each["name"]: each["nominalQuota"] for each in flavor["resources"]}


def test_devices_of_claims_are_counted_by_their_class() -> None:
    name = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"
    hard = _of(made({"quota": {"resources": {name: 4}}}, device_classes=["gpu.nvidia.com"]), "ResourceQuota")["spec"]
    assert hard["hard"][name] == "4"


def test_a_grant_raises_quota_and_queue_alike() -> None:
    found = made(FULL, granted={"nvidia.com/gpu": 24})
    assert _of(found, "ResourceQuota", "team-quota")["spec"]["hard"]["requests.nvidia.com/gpu"] == "24"
    flavor = _of(found, "ClusterQueue")["spec"]["resourceGroups"][0]["flavors"][0]
    assert next(one for one in flavor["resources"] if one["name"] == "nvidia.com/gpu") == {
        "name": "nvidia.com/gpu",
        "nominalQuota": "24",
        "borrowingLimit": "4",
    }


@pytest.mark.parametrize("gpus", [0, 1, 8])
def test_the_limit_range_blocks_no_valid_pod_and_gives_none_a_gpu(gpus: int) -> None:
    limits = copy.deepcopy(_of(made(FULL), "LimitRange"))
    complete(limits)
    found = pod("team-a", gpus)
    found["spec"]["containers"].append({"name": "sidecar", "image": "x"})
    set_defaults(found, limits)
    assert faults_of(found, limits) == []
    sidecar = found["spec"]["containers"][1]["resources"]
    assert sidecar == {"requests": {"cpu": "1", "memory": "4Gi"}}


def test_priorities_that_the_team_may_not_use_have_no_pods() -> None:
    denied = _of(made({"priorities": ["batch"]}), "ResourceQuota", "team-denied-priorities")["spec"]
    assert denied["hard"] == {"pods": "0"}
    assert denied["scopeSelector"]["matchExpressions"][0]["values"] == [
        "production",
        "research",
        "system-cluster-critical",
        "system-node-critical",
    ]


def test_no_role_may_change_its_own_limits() -> None:
    for role in (obj for obj in made(FULL) if obj["kind"] == "Role"):
        for rule in role["rules"]:
            is_writing = not set(rule["verbs"]) <= {"get", "list", "watch"}
            guarded = {"resourcequotas", "limitranges", "networkpolicies", "localqueues", "namespaces", "nodes"}
            assert "*" not in (*rule["verbs"], *rule["resources"], *rule["apiGroups"])
            assert "impersonate" not in rule["verbs"]
            assert not (is_writing and guarded & set(rule["resources"])), role["metadata"]["name"]


def test_viewers_do_not_read_secrets() -> None:
    rules = _of(made(FULL), "Role", "team-viewer")["rules"]
    assert not [rule for rule in rules if "secrets" in rule["resources"]]


def test_members_are_groups_users_and_accounts() -> None:
    found = {obj["metadata"]["name"]: obj["subjects"] for obj in made(FULL) if obj["kind"] == "RoleBinding"}
    group = "rbac.authorization.k8s.io"
    assert found["team-admin"] == [{"apiGroup": group, "kind": "User", "name": "ann"}]
    assert found["team-developer"] == [
        {"apiGroup": group, "kind": "Group", "name": "devs"},
        {"kind": "ServiceAccount", "namespace": "ci", "name": "runner"},
    ]


def test_only_the_namespace_of_the_team_may_submit_to_its_queue() -> None:
    spec = _of(made(FULL), "ClusterQueue")["spec"]
    assert spec["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}
    assert spec["fairSharing"] == {"weight": "2"}


def test_the_namespace_enforces_the_rules_that_the_isolation_needs() -> None:
    labels = _of(made({"quota": {"gpus": 8, "gpusPerPod": 4}}), "Namespace")["metadata"]["labels"]
    rules = {key.partition("/")[2]: value for key, value in labels.items() if key.startswith("admission.shoal.dev/")}
    assert rules == {
        "VisibleDevicesByHand": "enforce",
        "GpuWithoutRequest": "enforce",
        "PrivilegedContainer": "enforce",
        "OverNamespaceMaximum": "enforce",
        "max-gpus-per-pod": "4",
    }


def test_a_team_without_quota_has_no_queue() -> None:
    assert not [obj for obj in made({}) if obj["kind"] in ("ClusterQueue", "LocalQueue")]


@pytest.mark.parametrize("spec", [FULL, {}, {"quota": {"gpus": 4}}], ids=["full", "name alone", "GPUs"])
def test_lint_finds_nothing_in_the_objects(spec: Obj) -> None:
    objects = [*shared_objects(_team(spec)), *made(spec)]
    plain = [PlainObject(Where(file="team", document=at), obj) for at, obj in enumerate(objects, 1)]
    found = lint_files(PlainObjects(plain), ObjectSet(objects), frozenset(faults())).findings
    assert [(one.rule, one.object, one.message) for one in found] == []


def test_what_the_team_has_now_is_recorded_in_its_grant_also_what_it_has_during_the_grant_only() -> None:
    given = {"nvidia.com/mig-1g.5gb": 7, "nvidia.com/gpu": 24}
    grant = QuotaGrant("r", "bob", "ann", "2026-11-27T00:00:00Z", "", given, {})
    team = _team({"quota": {"gpus": 16}})
    made = team_objects(team, TeamSurroundings(["nvidia.com/mig-1g.5gb"], granted=given, grant=grant))
    quota = next(obj for obj in made if obj["metadata"]["name"] == "team-quota")
    found = grant_of(quota)
    assert found is not None
    assert found.former == {"requests.nvidia.com/mig-1g.5gb": "0", "requests.nvidia.com/gpu": "16"}
    queue = next(obj for obj in made if obj["kind"] == "ClusterQueue")
    restored = former_queue(queue, found)
    assert restored is not None
    amounts = {
        one["name"]: one["nominalQuota"] for one in restored["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    }
    assert (amounts["nvidia.com/mig-1g.5gb"], amounts["nvidia.com/gpu"]) == ("0", "16")
