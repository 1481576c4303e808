"""What is decided about jobs without a server: which action answers what happened, which phase follows."""

from __future__ import annotations

import pytest

from build.volcano_objects import job, job_pod
from shoal.controllers.volcano.course import Counts, after_action, next_phase
from shoal.controllers.volcano.job import VolcanoJob
from shoal.controllers.volcano.job_group import group_spec, startable
from shoal.controllers.volcano.policies import Choice, Fact, choose, facts_of, seconds
from shoal.store.live.item import Obj


@pytest.mark.parametrize(
    ("phase", "action", "expected"),
    [
        ("Running", "RestartJob", "Restarting"),
        ("Pending", "AbortJob", "Aborting"),
        ("Running", "TerminateJob", "Terminating"),
        ("Running", "CompleteJob", "Completing"),
        ("Aborted", "ResumeJob", "Restarting"),
        ("Aborting", "ResumeJob", "Restarting"),
        ("Running", "ResumeJob", "Running"),
        ("Completed", "RestartJob", "Completed"),
        ("Aborted", "AbortJob", "Aborted"),
        ("Running", "Nonsense", "Running"),
    ],
)
def test_an_action_leads_from_phase_to_phase(phase: str, action: str, expected: str) -> None:
    assert after_action(phase, action) == expected


@pytest.mark.parametrize(
    ("given", "counts", "expected"),
    [
        (job(phase="Pending"), Counts(pending=2), "Pending"),
        (job(phase="Pending"), Counts(running=2), "Running"),
        (job(phase="Pending", minAvailable=1), Counts(running=1, pending=1), "Running"),
        (job(), Counts(succeeded=2, by_task={"worker": {"Succeeded": 2}}), "Completed"),
        (job(), Counts(succeeded=1, failed=1, by_task={"worker": {"Succeeded": 1, "Failed": 1}}), "Failed"),
        (job(minAvailable=1), Counts(succeeded=1, failed=1), "Completed"),
        (job(minSuccess=1), Counts(succeeded=1, running=1), "Completed"),
        (job(minSuccess=2, minAvailable=1), Counts(succeeded=1, failed=1), "Failed"),
        (job(tasks=[{"name": "worker", "replicas": 0}]), Counts(), "Running"),
        (job(phase="Restarting"), Counts(terminating=2), "Restarting"),
        (job(phase="Restarting"), Counts(), "Pending"),
        (job(phase="Restarting", retries=3), Counts(terminating=2), "Failed"),
        (job(phase="Aborting"), Counts(terminating=1), "Aborting"),
        (job(phase="Aborting"), Counts(failed=1), "Aborted"),
        (job(phase="Completing"), Counts(succeeded=1), "Completed"),
        (job(phase="Terminating"), Counts(), "Terminated"),
        (job(phase="Failed"), Counts(running=2), "Failed"),
    ],
)
def test_the_next_phase_follows_from_the_pods(given: VolcanoJob, counts: Counts, expected: str) -> None:
    assert next_phase(given, counts) == expected


@pytest.mark.parametrize(
    ("policies", "fact", "expected"),
    [
        ([{"event": "PodFailed", "action": "AbortJob"}], Fact("PodFailed", "worker", "p"), "AbortJob"),
        ([{"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}], Fact("PodEvicted", "worker"), "RestartJob"),
        ([{"event": "*", "action": "RestartJob"}], Fact("TaskCompleted", "worker"), "RestartJob"),
        ([{"event": "*", "action": "RestartJob"}], Fact("PodPending", "worker"), None),
        ([{"exitCode": 3, "action": "CompleteJob"}], Fact("PodFailed", "worker", "p", 3), "CompleteJob"),
        ([{"exitCode": 3, "action": "CompleteJob"}], Fact("PodFailed", "worker", "p", 4), None),
        ([{"event": "PodFailed", "action": "SyncJob"}], Fact("PodFailed", "worker", "p"), None),
    ],
)
def test_the_first_policy_that_fits_is_taken(policies: list[Obj], fact: Fact, expected: str | None) -> None:
    choice, _ = choose(job(policies=policies), [fact], 0.0)
    assert (choice.action if choice is not None else None) == expected


def test_a_timeout_puts_an_action_off() -> None:
    waits = job(policies=[{"event": "PodPending", "action": "RestartJob", "timeout": "1m30s"}])
    fact = Fact("PodPending", "worker", "p", since_s=100.0)
    assert choose(waits, [fact], 130.0) == (None, 60.0)
    assert choose(waits, [fact], 190.0)[0] == Choice("RestartJob", "worker", "p")
    assert seconds("1h1m1.5s") == 3661.5


def test_pods_of_an_older_version_are_no_events_any_more() -> None:
    pods = [job_pod(phase="Failed", version=0, exit_code=2), job_pod("j-worker-1", version=1)]
    assert [one.event for one in facts_of(job(version=1), pods)] == ["PodRunning"]
    assert "PodFailed" in [one.event for one in facts_of(job(version=0), pods)]


def test_a_pod_that_vanished_unseen_was_evicted() -> None:
    told = {"worker": {"phase": {"Running": 2}}}
    facts = list(facts_of(job(told=told), [job_pod()]))
    assert Fact("PodEvicted", "worker") in facts
    smaller = job(told=told, tasks=[{"name": "worker", "replicas": 1}])
    assert Fact("PodEvicted", "worker") not in list(facts_of(smaller, [job_pod()]))


def test_a_group_grows_as_tasks_may_start() -> None:
    tasks = [{"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 2, "dependsOn": {"name": ["ps"]}}]
    waits = job(tasks=tasks)
    assert group_spec(waits, startable(waits, []), {})["minMember"] == 1
    assert group_spec(waits, startable(waits, [job_pod("j-ps-0", "Pending")]), {})["minMember"] == 1
    assert group_spec(waits, startable(waits, [job_pod("j-ps-0")]), {})["minMember"] == 3
    begun = [job_pod("j-ps-0", "Failed"), job_pod("j-worker-0")]
    assert len(startable(waits, begun)) == 2
