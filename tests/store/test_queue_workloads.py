"""Workloads as they stand among manifests: what they hold, how far they came, for whom they stand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.manifests import Object, job, pod, thing
from build.queue_manifests import (
    IN_GROUP,
    IN_Q,
    TOTAL,
    admission,
    condition,
    configuration,
    only,
    owned_by,
    pod_set,
    queues,
    workload,
    workloads,
    world,
)
from shoal.engine.queues.facts import BudgetUse, PodSetAdmission, QuotaAssignment
from shoal.engine.queues.topology_facts import TopologyAssignment
from shoal.sim.queued_world import kueue_of
from shoal.units.errors import UserError

NEW_YEAR_S = 1767225600.0


def test_a_workload_of_a_job_stands_for_it() -> None:
    made = workload("t/job-train-1a2b", meta=owned_by("Job", "train"))
    found = world(*queues(), job("t/train", 2, labels=IN_Q), made)
    assert [facts.key for facts in found.workloads] == ["t/job-train-1a2b"]
    assert found.pods == {"t/job-train-1a2b": ("t/train-0", "t/train-1")}


def test_a_workload_may_know_its_job_by_its_uid_alone() -> None:
    train = job("t/train", 1, labels=IN_Q)
    train["metadata"]["uid"] = "u-1"
    made = workload("t/w", meta={"labels": {"kueue.x-k8s.io/job-uid": "u-1"}})
    assert [facts.key for facts in world(*queues(), train, made).workloads] == ["t/w"]


def test_a_job_may_name_a_workload_that_was_built_before_it() -> None:
    labels = {**IN_Q, "kueue.x-k8s.io/prebuilt-workload-name": "w"}
    found = world(*queues(), job("t/train", 1, labels=labels), workload("t/w"))
    assert [facts.key for facts in found.workloads] == ["t/w"]
    assert found.pods == {"t/w": ("t/train-0",)}


def test_an_object_of_the_same_name_stands_for_a_job_without_saying_so() -> None:
    found = world(*queues(), job("t/train", 2, labels=IN_Q), workload("t/job-train"))
    assert [len(facts.pod_sets) and facts.pod_sets[0].count for facts in found.workloads] == [1]
    assert found.pods == {"t/job-train": ("t/train-0", "t/train-1")}


def test_two_workloads_of_one_name_are_refused() -> None:
    group = {**IN_GROUP, "kueue.x-k8s.io/pod-group-name": "job-train"}
    lone = pod("t/a", labels=group, annotations={TOTAL: "1"})
    with pytest.raises(
        UserError, match=r"Pod t/a\): metadata.name: makes a workload t/job-train, which already exists"
    ):
        world(*queues(), job("t/train", 2, labels=IN_Q), lone)


def test_the_jobs_of_a_workload_that_is_there_are_not_workloads_of_their_own() -> None:
    child = job("t/set-w-0", 3, labels=IN_Q)
    child["metadata"] |= owned_by("JobSet", "set")
    made = workload("t/jobset-set", meta=owned_by("JobSet", "set"))
    found = world(*queues(), child, made)
    assert found.pods == {"t/jobset-set": ("t/set-w-0-0", "t/set-w-0-1", "t/set-w-0-2")}


def test_a_finished_workload_holds_nothing_and_its_job_makes_no_other() -> None:
    done = workload(
        "t/w", {"admission": admission(), "conditions": [condition("Finished")]}, meta=owned_by("Job", "train")
    )
    assert workloads(job("t/train", 1, labels=IN_Q), done) == {}


def test_a_workload_of_a_pod_group_stands_for_its_pods() -> None:
    members = [pod(f"t/{name}", labels=IN_GROUP, annotations={TOTAL: "2"}) for name in ("a", "b")]
    found = world(*queues(), *members, workload("t/g"))
    assert [facts.key for facts in found.workloads] == ["t/g"]
    assert found.pods == {"t/g": ("t/a", "t/b")}


def test_an_admitted_workload_holds_what_its_status_says() -> None:
    status = {
        "admission": admission(2, 4),
        "conditions": [
            condition("QuotaReserved"),
            condition("Admitted", at="2026-01-01T00:01:00Z"),
            condition("PodsReady", "False"),
        ],
    }
    facts = only(workload(status=status, podSets=[pod_set(2, cpu=2)]))
    assert facts.admission == QuotaAssignment("cq", (PodSetAdmission("main", 2, {"cpu": "f"}, {"cpu": 4000}),))
    assert (facts.reserved_s, facts.admitted, facts.admitted_s) == (NEW_YEAR_S, True, NEW_YEAR_S + 60)
    assert not facts.pods_ready


def test_a_workload_that_says_nothing_of_its_pods_is_taken_to_be_ready() -> None:
    """Pods have to be ready by default, and a picture drawn by hand leaves the condition out."""
    status = {"admission": admission(), "conditions": [condition("QuotaReserved"), condition("Admitted")]}
    assert only(configuration(waitForPodsReady={"timeout": "5m"}), workload(status=status)).pods_ready


WAS_READY = ["WaitForRecovery", "Recovered", "Started"]


@pytest.mark.parametrize("reason", [*WAS_READY, "WaitForStart", ""])
def test_pods_that_were_ready_and_are_no_more_are_lost_since_then(reason: str) -> None:
    lost = condition("PodsReady", "False", "2026-01-01T01:00:00Z", reason)
    status = {"admission": admission(), "conditions": [condition("QuotaReserved"), condition("Admitted"), lost]}
    facts = only(configuration(waitForPodsReady={"timeout": "5m"}), workload(status=status))
    assert not facts.pods_ready
    assert facts.ready_lost_s == (NEW_YEAR_S + 3600 if reason in WAS_READY else None)


def test_pods_that_are_ready_or_were_lost_under_an_earlier_admission_are_not_lost() -> None:
    for status, at in (("True", "2026-01-01T01:00:00Z"), ("False", "2025-12-31T00:00:00Z")):
        ready = condition("PodsReady", status, at, "WaitForRecovery")
        conditions = [condition("QuotaReserved"), condition("Admitted"), ready]
        assert only(workload(status={"admission": admission(), "conditions": conditions})).ready_lost_s is None


def finished(name: str, reason: str = "Succeeded", *more: Object) -> Object:
    """It was admitted at New Year, and ended ten minutes later."""
    done = condition("Finished", at="2026-01-01T00:10:00Z", reason=reason)
    conditions = [condition("QuotaReserved"), *(more or [condition("Admitted")]), done]
    return workload(name, {"admission": admission(), "conditions": conditions})


def test_work_that_was_done_tells_how_long_its_like_takes() -> None:
    found = world(*queues(), finished("t/old"), workload("t/new"))
    assert [(facts.key, ran) for facts, ran in found.history] == [("t/old", 600.0)]
    assert [facts.key for facts in found.workloads] == ["t/new"]
    assert kueue_of(found, found.now_s).durations.expected_s(found.workloads[0]) == 600.0


def test_work_that_was_not_done_or_never_admitted_tells_nothing() -> None:
    failed, unknown = finished("t/a", "Failed"), finished("t/b", "Succeeded", condition("Admitted", "False"))
    broken = finished("t/c")
    broken["metadata"]["annotations"] = {"shoal.dev/expected-duration": "soon"}
    assert world(*queues(), failed, unknown, broken).history == []


def test_an_admission_written_by_hand_needs_no_conditions() -> None:
    assigned = {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "flavors": {"cpu": "f"}}]}
    facts = only(workload(status={"admission": assigned}, podSets=[pod_set(3, cpu=2)]))
    assert facts.admitted
    assert facts.admission == QuotaAssignment("cq", (PodSetAdmission("main", 3, {"cpu": "f"}, {"cpu": 6000}),))


def test_quota_that_was_taken_back_is_held_no_more() -> None:
    status = {"admission": admission(), "conditions": [condition("QuotaReserved", "False")]}
    assert only(workload(status=status)).admission is None


def test_reserved_is_not_admitted_while_a_check_is_open() -> None:
    status = {
        "admission": admission(),
        "conditions": [condition("QuotaReserved")],
        "admissionChecks": [{"name": "c", "state": "Pending"}],
    }
    facts = only(workload(status=status))
    assert (facts.admission is not None, facts.admitted, facts.checks) == (True, False, {"c": "Pending"})


def test_pods_that_are_needed_no_more_are_charged_no_more() -> None:
    status = {"admission": admission(4, 8), "reclaimablePods": [{"name": "main", "count": 1}]}
    facts = only(workload(status=status, podSets=[pod_set(4, cpu=2)]))
    assert facts.reclaimable == {"main": 1}
    assert facts.admission is not None
    assert facts.admission.pod_sets[0].usage == {"cpu": 6000}


def test_a_workload_started_smaller_gives_back_only_what_it_has() -> None:
    status = {"admission": admission(3, 3), "reclaimablePods": [{"name": "main", "count": 1}]}
    facts = only(workload(status=status, podSets=[pod_set(5, minCount=2)]))
    assert facts.admission is not None
    assert facts.admission.pod_sets[0].usage == {"cpu": 3000}


def test_an_eviction_and_its_backoff_are_read() -> None:
    status = {
        "conditions": [condition("Evicted", reason="PodsReadyTimeout"), condition("Requeued", "False")],
        "requeueState": {"count": 2, "requeueAt": "2026-01-01T00:05:00Z"},
    }
    found = world(*queues(), workload(status=status))
    (facts,) = found.workloads
    assert (facts.evicted_s, facts.evicted_why) == (NEW_YEAR_S, "PodsReadyTimeout")
    assert (facts.requeue_at_s, facts.requeues) == (NEW_YEAR_S + 300, 2)
    assert found.now_s == NEW_YEAR_S, "what is still to come is not the present"


def test_an_eviction_that_is_over_is_forgotten() -> None:
    assert only(workload(status={"conditions": [condition("Evicted", "False")]})).evicted_s is None


def test_whoever_is_deleted_is_on_its_way_out_or_gone() -> None:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert workloads(workload(meta=deleted)) == {}
    assert only(workload(status={"admission": admission()}, meta=deleted)).evicted_s == NEW_YEAR_S


def test_domains_are_unpacked_and_stand_in_order() -> None:
    packed = {
        "levels": ["kubernetes.io/hostname"],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [{"individual": {"prefix": "n-", "roots": ["2", "1"]}}],
                "podCounts": {"individual": [1, 3]},
            }
        ],
    }
    facts = only(workload(status={"admission": admission(4, 4, packed)}, podSets=[pod_set(4)]))
    assert facts.admission is not None
    assert facts.admission.pod_sets[0].topology == TopologyAssignment(
        ("kubernetes.io/hostname",), ((("n-1",), 3), (("n-2",), 1))
    )


def test_what_else_a_workload_says() -> None:
    facts = only(
        workload(
            status={"unhealthyNodes": [{"name": "n1"}]},
            active=False,
            priority=7,
            priorityClassRef={"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "gone"},
            podSets=[pod_set(2, topologyRequest={"required": "rack"})],
        )
    )
    assert (facts.active, facts.priority, facts.unhealthy_nodes) == (False, 7, ("n1",))
    topology = facts.pod_sets[0].topology
    assert topology is not None
    assert topology.required == "rack"


def test_the_oldest_save_of_its_pods_is_the_workloads() -> None:
    owner = owned_by("Job", "train")
    saves = {"a": "2026-01-01T00:00:00Z", "b": "2025-12-31T23:59:00Z"}
    pods = [
        pod(f"t/{name}", on="n", annotations={"shoal.dev/last-checkpoint": text}, meta=owner)
        for name, text in saves.items()
    ]
    facts = only(*pods, workload(status={"admission": admission()}, meta=owner))
    assert facts.saved_s == NEW_YEAR_S - 60


@pytest.mark.parametrize(("spare", "shielded"), [(1, True), (2, False)])
def test_a_budget_shields_who_has_more_pods_than_may_go(spare: int, shielded: bool) -> None:
    owner = owned_by("Job", "train")
    pods = [pod(f"t/{name}", on="n", labels={"app": "x"}, meta=owner) for name in "ab"]
    budget = thing(
        "policy/v1",
        "PodDisruptionBudget",
        "t/b",
        spec={"minAvailable": 0, "selector": {"matchLabels": {"app": "x"}}},
        status={"disruptionsAllowed": spare},
    )
    facts = only(*pods, budget, workload(status={"admission": admission()}, meta=owner))
    assert facts.budgets == (BudgetUse("t/b", 2, spare),)
    assert facts.shielded is shielded


def test_pods_that_are_not_up_draw_on_no_budget() -> None:
    owner = owned_by("Job", "train")
    ending = {**owner, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    pods = [
        pod("t/up", on="n", labels={"app": "x"}, meta=owner),
        pod("t/ending", on="n", labels={"app": "x"}, meta=ending),
        pod("t/pending", labels={"app": "x"}, meta=owner),
        pod("t/other", on="n", labels={"app": "y"}, meta=owner),
    ]
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    budget = thing("policy/v1", "PodDisruptionBudget", "t/b", spec=spec, status={"disruptionsAllowed": 0})
    facts = only(*pods, budget, workload(status={"admission": admission()}, meta=owner))
    assert facts.budgets == (BudgetUse("t/b", 1, 0),)


FOLDER = [
    *queues(),
    job("t/b", 2, labels=IN_Q),
    pod("t/a", labels=IN_Q),
    workload("t/w"),
    workload("t/held", {"admission": admission()}, meta=owned_by("Job", "run")),
    job("t/run", 1, labels=IN_Q),
    pod("t/run-0", on="n", meta=owned_by("Job", "run")),
    *(pod(f"t/{name}", labels=IN_GROUP, annotations={TOTAL: "2"}) for name in ("x", "y")),
]


@settings(max_examples=examples(25), deadline=None)
@given(st.permutations(FOLDER))
def test_equal_documents_give_equal_worlds_in_any_order(shuffled: list[Object]) -> None:
    one, other = world(*FOLDER), world(*shuffled)
    assert one.workloads == other.workloads
    assert one.pods == other.pods
    assert sorted(map(str, one.facts)) == sorted(map(str, other.facts))


def test_templates_are_kept_for_every_pod_set() -> None:
    found = world(*queues(), job("t/train", 2, 1, labels=IN_Q), workload("t/w"))
    assert set(found.templates) == {("t/job-train", "main"), ("t/w", "main")}
    assert found.templates["t/w", "main"].spec.containers[0].name == "c"


def test_a_queue_label_on_a_jobs_template_is_not_a_pods() -> None:
    """The job is one workload, and its pods are not workloads of their own beside it."""
    assert set(workloads(job("t/train", 2, labels=IN_Q, template={"labels": IN_Q}))) == {"t/job-train"}
