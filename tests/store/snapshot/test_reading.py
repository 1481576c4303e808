"""A living cluster as one picture: which kinds are in it, in which order, and what is left out."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from build.living_objects import LivingObjects
from build.manifests import Object, node, pod, thing, volcano_group
from shoal.api.budget_report import BudgetReport
from shoal.api.decode import read
from shoal.api.kueue.configuration import Configuration
from shoal.api.run_configuration import IN_USE, QUEUES_IN_USE, PreemptionRules, RunConfiguration
from shoal.api.wire import to_json
from shoal.cli.preemption_options import rules_in_use
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, VOLCANO_POD_GROUPS
from shoal.client.kind import CONFIG_MAPS, NODES, PODS, SECRETS, Kind
from shoal.client.port import Api, ServedKind
from shoal.client.refusals import ForbiddenError
from shoal.store.snapshot.kinds import NEEDED, WANTED, present
from shoal.store.snapshot.reading import QueueRuling, Snapshot, read_snapshot
from shoal.units.errors import UserError

KUEUE_CONFIG = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {preemptionStrategies: [LessThanInitialShare]}
internalCertManagement: {webhookSecretName: hunter2}
"""


def taken(cluster: LivingObjects) -> Snapshot:
    return asyncio.run(read_snapshot(cast("Api", cluster)))


def cluster(*objects: Object, **more: Any) -> LivingObjects:
    return LivingObjects(*objects, **more).serving(PODS, NODES, VOLCANO_POD_GROUPS, CONFIG_MAPS, SECRETS)


def names(snapshot: Snapshot) -> list[str]:
    return [entry.document.where.obj for entry in snapshot.entries]


def test_surroundings_come_before_pods_and_each_kind_by_name() -> None:
    found = taken(cluster(pod("t/b"), pod("t/a"), volcano_group("t/g", 2), node("n2"), node("n1")))
    assert names(found) == ["Node n1", "Node n2", "PodGroup t/g", "Pod t/a", "Pod t/b"]


def test_one_cluster_gives_one_picture_whatever_order_it_lists_in() -> None:
    objects = [pod("t/b"), pod("t/a"), node("n2"), node("n1")]
    assert taken(cluster(*objects)).to_json() == taken(cluster(*reversed(objects))).to_json()


def test_secrets_and_config_maps_are_not_even_listed() -> None:
    asked = cluster(node("n"), thing("v1", "Secret", "s", data={"password": "aHVudGVyMg=="}))
    assert b"Secret" not in taken(asked).to_json()
    assert {kind.plural for kind in asked.listed} == {"nodes", "podgroups", "pods"}
    assert not {"secrets", "configmaps"} & {kind.plural for kind in WANTED}


def test_of_config_maps_only_what_kueue_is_told_to_decide_by_is_taken() -> None:
    kept = thing("v1", "ConfigMap", "kueue-system/kueue-manager-config")
    kept["data"] = {"controller_manager_config.yaml": KUEUE_CONFIG, "other": "hunter2"}
    found = taken(cluster(node("n"), kept))
    assert b"hunter2" not in found.to_json()
    value = found.entries[-1].document.value
    assert isinstance(value, Configuration)
    assert value.fair_sharing is not None
    assert value.fair_sharing.preemption_strategies == ("LessThanInitialShare",)


def test_kueues_configuration_is_read_where_it_was_installed_and_nowhere_else() -> None:
    kept = thing("v1", "ConfigMap", "queues/kueue-manager-config")
    kept["data"] = {"c": KUEUE_CONFIG}
    asked = cast("Api", cluster(node("n"), kept))
    assert names(asyncio.run(read_snapshot(asked))) == ["Node n"]
    there = asyncio.run(read_snapshot(asked, QueueRuling("queues")))
    assert [type(entry.document.value).__name__ for entry in there.entries] == ["Node", "Configuration"]


NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEADS: dict[str, tuple[str, float, str, bool]] = {
    "lately": ("kueue-system", 5, "kueue-1", True),
    "long ago": ("kueue-system", 300, "kueue-1", False),
    "by nobody": ("kueue-system", 5, "", False),
    "elsewhere": ("a-tenant", 5, "kueue-1", False),
}


@pytest.mark.parametrize("case", LEADS)
def test_the_lease_of_kueues_leader_is_taken_where_it_was_renewed(case: str) -> None:
    namespace, ago_s, holder, is_taken = LEADS[case]
    renewed = (NOW - timedelta(seconds=ago_s)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    lease = thing("coordination.k8s.io/v1", "Lease", f"{namespace}/c1f6bfd2.kueue.x-k8s.io", spec=spec)
    found = asyncio.run(read_snapshot(cast("Api", cluster(node("n"), lease)), now=NOW))
    assert (b"holderIdentity" in found.to_json()) == is_taken


def test_a_configuration_that_was_given_stands_in_for_the_clusters() -> None:
    kept = thing("v1", "ConfigMap", "kueue-system/kueue-manager-config")
    kept["data"] = {"c": KUEUE_CONFIG}
    given = Configuration(manage_jobs_without_queue_name=True)
    found = asyncio.run(read_snapshot(cast("Api", cluster(node("n"), kept)), QueueRuling(given=given)))
    value = read(found.to_json())[-1].value
    assert isinstance(value, Configuration)
    assert value.manage_jobs_without_queue_name
    assert value.fair_sharing is None


OWN = RunConfiguration(policy="FGD", preemption=PreemptionRules(moves=True, min_runtime="5m"))


def shoals_lease(holder: str = "shoal-1", **annotations: str) -> dict[str, Any]:
    lease = thing("coordination.k8s.io/v1", "Lease", "kube-system/shoal", spec={"holderIdentity": holder})
    lease["metadata"]["annotations"] = annotations
    return lease


def test_the_configuration_that_the_leader_of_shoal_run_decides_with_is_taken_from_its_lease() -> None:
    given = Configuration(manage_jobs_without_queue_name=True)
    written = {IN_USE: to_json(OWN).decode(), QUEUES_IN_USE: to_json(given).decode()}
    found = taken(cluster(node("n"), shoals_lease(**written)))
    own = rules_in_use(entry.document for entry in found.entries)
    assert own is not None
    assert (own.policy, own.preemption) == (OWN.policy, OWN.preemption)
    (queues,) = [each.value for each in read(found.to_json()) if isinstance(each.value, Configuration)]
    assert queues.manage_jobs_without_queue_name


@pytest.mark.parametrize(
    "lease",
    [
        shoals_lease("", **{IN_USE: to_json(OWN).decode()}),
        shoals_lease(**{IN_USE: "", QUEUES_IN_USE: ""}),
        shoals_lease(**{IN_USE: '{"preemption": 1}'}),
        shoals_lease(),
    ],
    ids=["released", "unknown", "of another version", "without"],
)
def test_no_configuration_is_taken_from_a_lease_that_has_none_in_use(lease: dict[str, Any]) -> None:
    assert names(taken(cluster(node("n"), lease))) == ["Node n"]


def test_the_configuration_that_is_given_to_a_snapshot_is_written_into_it() -> None:
    found = asyncio.run(read_snapshot(cast("Api", cluster(node("n"))), QueueRuling(own=OWN)))
    own = rules_in_use(read(found.to_json()))
    assert own is not None
    assert own.preemption.moves


@pytest.mark.parametrize("form", [Snapshot.to_json, Snapshot.to_yaml])
def test_what_is_written_is_read_back_alike(form: Any) -> None:
    kept = thing("v1", "ConfigMap", "kueue-system/kueue-manager-config")
    kept["data"] = {"c": KUEUE_CONFIG}
    found = taken(cluster(node("n", 8), pod("t/a", 2, annotations={"gpu-fraction": "0.5"}), kept))
    again = read(form(found))
    assert [each.value for each in again] == [entry.document.value for entry in found.entries]


def test_an_object_stands_on_a_line_of_its_own() -> None:
    lines = taken(cluster(node("n"), pod("t/a"))).to_json().splitlines()
    assert [json.loads(line.rstrip(b","))["kind"] for line in lines[1:-1]] == ["Node", "Pod"]


def test_an_object_that_nobody_could_read_is_named_and_left_out() -> None:
    wrong = pod("t/wrong", limits={"cpu": "a lot"})
    found = taken(cluster(node("n"), wrong, pod("t/right")))
    assert names(found) == ["Node n", "Pod t/right"]
    assert len(found.notes) == 1
    assert found.notes[0].startswith("Pod t/wrong is left out: spec.containers[0].resources.limits")


def test_a_kind_that_may_not_be_read_is_named_and_left_out() -> None:
    found = taken(cluster(node("n"), volcano_group("t/g", 1), forbidden=["podgroups"]))
    assert names(found) == ["Node n"]
    assert "podgroups are left out: " in found.notes[0]
    assert 'User "eve" cannot list' in found.notes[0]


@pytest.mark.parametrize("kind", NEEDED)
def test_without_nodes_or_pods_there_is_no_picture(kind: Kind) -> None:
    with pytest.raises(ForbiddenError, match=kind.plural):
        taken(cluster(node("n"), forbidden=[kind.plural]))


def test_a_kind_that_has_just_gone_is_as_if_it_had_never_been_there() -> None:
    found = taken(cluster(node("n"), gone=["podgroups"]))
    assert (names(found), found.notes) == (["Node n"], [])


def test_an_older_version_that_is_read_is_taken_as_it_is_served() -> None:
    older = CLUSTER_QUEUES._replace(version="v1beta1")
    asked = LivingObjects(node("n")).serving(NODES, older)
    taken(asked)
    assert asked.listed == [NODES, older]


def test_a_version_that_is_not_read_gives_way_to_one_that_is() -> None:
    newer = CLUSTER_QUEUES._replace(version="v2")
    served = ServedKind(newer, frozenset({"list"}), ("v2", "v1beta2", "v1beta1"))
    assert list(present([served])) == [CLUSTER_QUEUES]


def test_a_picture_too_large_to_be_read_back_is_refused() -> None:
    found = taken(cluster(node("n")))
    with pytest.raises(UserError, match="the picture of the cluster is"):
        found.to_json(most_bytes=10)


def test_every_kind_is_wanted_once_and_pods_come_last() -> None:
    assert len(set(WANTED)) == len(WANTED)
    assert WANTED[-1] == PODS


def test_what_budgets_have_spent_is_in_the_picture_if_it_is_beside_the_lease() -> None:
    budget = {"kind": "team", "name": "red", "perMonth": "10", "spent": "11", "forecast": "12", "enforced": "spent"}
    text = json.dumps({"period": "2026-11", "budgets": [budget]})
    written = thing("v1", "ConfigMap", "kube-system/shoal-budgets", data={"budgets.json": text})
    (entry,) = taken(cluster(written)).entries
    assert isinstance(entry.document.value, BudgetReport)
    assert entry.document.value.budgets[0].name == "red"
    assert names(taken(cluster(thing("v1", "ConfigMap", "t/shoal-budgets", data={"budgets.json": text})))) == []


def test_a_report_of_budgets_that_cannot_be_read_is_left_out_with_a_note() -> None:
    written = thing("v1", "ConfigMap", "kube-system/shoal-budgets", data={"budgets.json": "no"})
    found = taken(cluster(written))
    assert found.entries == []
    assert "ConfigMap kube-system/shoal-budgets is left out" in found.notes[0]
