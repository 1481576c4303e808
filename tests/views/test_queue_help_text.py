"""Remedies in words: one sentence that names the object, the field and both values as a manifest spells them."""

from __future__ import annotations

import pytest

from shoal.engine.queues.remedies import Effect, FieldChange, Remedy, RemedyKind
from shoal.views.queue_help import remedy_words

GPU = "nvidia.com/gpu"
JOB = "team-a/train"


def quota(field: str, before: int | None, after: int, *, queue: str = "team-a", resource: str = GPU) -> FieldChange:
    return FieldChange("ClusterQueue", queue, field, before, after, resource, "h100")


def job(field: str, before: int | str | None, after: int | str | None, flavor: str = "") -> FieldChange:
    return FieldChange("Workload", JOB, field, before, after, flavor=flavor, part="workers")


SENTENCES: dict[str, tuple[RemedyKind, Effect, list[FieldChange], str]] = {
    "quota": (
        RemedyKind.QUOTA,
        Effect.ADMITTED,
        [quota("nominalQuota", 8, 12)],
        "Raise nominalQuota of nvidia.com/gpu in flavor h100 of ClusterQueue team-a from 8 to 12.",
    ),
    "quota of a cohort that has none yet": (
        RemedyKind.QUOTA,
        Effect.ADMITTED,
        [FieldChange("Cohort", "all", "nominalQuota", None, 4, GPU, "h100")],
        "Raise nominalQuota of nvidia.com/gpu in flavor h100 of Cohort all from 0 to 4.",
    ),
    "amounts are spelled as in manifests": (
        RemedyKind.QUOTA,
        Effect.ADMITTED,
        [quota("nominalQuota", 2000, 2500, resource="cpu"), quota("nominalQuota", 0, 3 << 30, resource="memory")],
        (
            "Raise nominalQuota of cpu in flavor h100 of ClusterQueue team-a from 2 to 2500m, "
            "and nominalQuota of memory in flavor h100 of ClusterQueue team-a from 0 to 3Gi."
        ),
    ),
    "limits": (
        RemedyKind.BORROWING,
        Effect.PREEMPTS,
        [quota("borrowingLimit", 2, 6)],
        (
            "Raise borrowingLimit of nvidia.com/gpu in flavor h100 of ClusterQueue team-a from 2 to 6. "
            "Other workloads are then preempted."
        ),
    ),
    "a part of what is borrowed": (
        RemedyKind.FREED,
        Effect.ADMITTED,
        [quota("borrowed", 12, 8, queue="team-b")],
        "It starts if ClusterQueue team-b gives back 4 of the 12 nvidia.com/gpu in flavor h100 that it borrows.",
    ),
    "all that two of them use": (
        RemedyKind.FREED,
        Effect.ADMITTED,
        [quota("used", 4, 0, queue="team-b"), quota("used", 3, 2, queue="team-c")],
        (
            "It starts if ClusterQueue team-b gives back the 4 nvidia.com/gpu in flavor h100 that it uses, "
            "and ClusterQueue team-c gives back 1 of the 3 nvidia.com/gpu in flavor h100 that it uses."
        ),
    ),
    "workloads that end": (
        RemedyKind.ENDED,
        Effect.ADMITTED,
        [FieldChange("Workload", f"team-b/{name}", "active") for name in "abcdef"],
        "It starts if the workloads end: team-b/a, team-b/b, team-b/c, team-b/d and 2 more.",
    ),
    "fewer pods": (
        RemedyKind.FEWER_PODS,
        Effect.ADMITTED,
        [job("minCount", 8, 5)],
        "Let pod set workers start with 5 pods (minCount) instead of 8.",
    ),
    "a smaller job": (
        RemedyKind.FEWER_PODS,
        Effect.ADMITTED,
        [job("count", 8, 5)],
        "Ask for 5 pods instead of 8 in pod set workers.",
    ),
    "another flavor": (
        RemedyKind.FLAVOR,
        Effect.ADMITTED_BY_QUOTA,
        [job("nodeSelector", "model=a100", None, "h100"), job("tolerations", None, "spot=yes:NoSchedule", "h100")],
        (
            "Drop nodeSelector model=a100 of pod set workers, and let pod set workers tolerate the taint "
            "spot=yes:NoSchedule: flavor h100 then suits it. Its quota is then free; whether such pods find places on "
            "the nodes was not tried."
        ),
    ),
    "another flavor that is full": (
        RemedyKind.QUOTA,
        Effect.ADMITTED,
        [job("nodeAffinity", None, None, "h100"), quota("nominalQuota", 2, 4)],
        (
            "Drop the node affinity of pod set workers, and raise nominalQuota of nvidia.com/gpu in flavor h100 of "
            "ClusterQueue team-a from 2 to 4."
        ),
    ),
    "the rule by which quota is taken back": (
        RemedyKind.RECLAIM,
        Effect.PREEMPTS,
        [FieldChange("ClusterQueue", "team-a", "preemption.reclaimWithinCohort", "Never", "Any")],
        (
            "Set preemption.reclaimWithinCohort of ClusterQueue team-a to Any: it takes back what others borrow. "
            "Other workloads are then preempted."
        ),
    ),
    "priority": (
        RemedyKind.PRIORITY,
        Effect.PREEMPTS,
        [FieldChange("Workload", JOB, "priority", 0, 11)],
        "Raise its priority from 0 to 11. Other workloads are then preempted.",
    ),
    "nothing": (
        RemedyKind.TURN,
        Effect.ADMITTED,
        [],
        "Nothing has to change: it is admitted when it is next considered.",
    ),
    "a workload before it in a strict queue": (
        RemedyKind.TURN,
        Effect.UNTRIED,
        [FieldChange("ClusterQueue", "team-a", "queueingStrategy", "StrictFIFO", holders=("default/first",))],
        (
            "It has to wait until default/first is admitted, which is before it in ClusterQueue team-a: "
            "queueingStrategy StrictFIFO."
        ),
    ),
    "nothing but preemption": (
        RemedyKind.TURN,
        Effect.PREEMPTS,
        [],
        "Nothing has to change: other workloads are preempted for it.",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_remedy_reads_as_one_would_say_it(name: str) -> None:
    kind, effect, changes, sentence = SENTENCES[name]
    assert remedy_words(Remedy(kind, effect, tuple(changes))) == sentence


def test_where_the_search_was_cut_fewer_workloads_may_do() -> None:
    ends = Remedy(RemedyKind.ENDED, Effect.ADMITTED, (FieldChange("Workload", "team-b/a", "active"),), is_least=False)
    assert remedy_words(ends).endswith("ends: team-b/a. Fewer may do: that was not tried to the end.")


OBSTACLES: dict[str, tuple[list[FieldChange], str, str]] = {
    "missing": (
        [FieldChange("LocalQueue", "team-a/main", "", None, "team-a/main")],
        "LocalQueue team-a/main doesn't exist",
        "LocalQueue team-a/main does not exist: create it.",
    ),
    "stopped": (
        [FieldChange("ClusterQueue", "team-a", "stopPolicy", "Hold", "None")],
        "ClusterQueue team-a is stopped",
        "Set stopPolicy of ClusterQueue team-a to None: ClusterQueue team-a is stopped.",
    ),
    "wrong": (
        [FieldChange("Namespace", "dev", "labels")],
        "they do not match",
        "Correct labels of Namespace dev: they do not match.",
    ),
    "not covered": (
        [FieldChange("ClusterQueue", "team-a", "coveredResources", None, "cpu")],
        "it has no quota of cpu",
        "Add cpu to coveredResources of ClusterQueue team-a, with a quota: it has no quota of cpu.",
    ),
    "nobody's field": ([], "The workload is deactivated", "Correct this first: The workload is deactivated."),
}


def test_a_start_that_others_were_promised_is_told() -> None:
    remedy = Remedy(RemedyKind.TURN, Effect.UNTRIED, message="It would delay team-a/big")
    assert remedy_words(remedy) == "It has to wait for workloads before it. It would delay team-a/big."


@pytest.mark.parametrize("name", OBSTACLES)
def test_what_stands_in_the_way_is_said_with_what_to_do(name: str) -> None:
    changes, message, sentence = OBSTACLES[name]
    assert remedy_words(Remedy(RemedyKind.CORRECT, Effect.UNTRIED, tuple(changes), message)) == sentence
