"""What is decided about jobs without a server: which action answers what happened, which phase follows."""

from __future__ import annotations

from itertools import product

import pytest

from build.volcano_objects import job, job_pod
from shoal.client.item import Obj
from shoal.controllers.volcano.job import VolcanoJob
from shoal.controllers.volcano.job_phases import (
    ACTION_TRANSITIONS,
    POD_TRANSITIONS,
    JobPodCounts,
    after_action,
    next_phase,
)
from shoal.controllers.volcano.job_pod_group import group_spec, startable
from shoal.controllers.volcano.policies import JobEvent, PolicyAction, due_action, go_duration_s, job_events


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
        (job(phase="Pending"), JobPodCounts(pending=2), "Pending"),
        (job(phase="Pending"), JobPodCounts(running=2), "Running"),
        (job(phase="Pending", minAvailable=1), JobPodCounts(running=1, pending=1), "Running"),
        (job(), JobPodCounts(succeeded=2, by_task={"worker": {"Succeeded": 2}}), "Completed"),
        (job(), JobPodCounts(succeeded=1, failed=1, by_task={"worker": {"Succeeded": 1, "Failed": 1}}), "Failed"),
        (job(minAvailable=1), JobPodCounts(succeeded=1, failed=1), "Completed"),
        (job(minSuccess=1), JobPodCounts(succeeded=1, running=1), "Completed"),
        (job(minSuccess=2, minAvailable=1), JobPodCounts(succeeded=1, failed=1), "Failed"),
        (job(tasks=[{"name": "worker", "replicas": 0}]), JobPodCounts(), "Running"),
        (job(phase="Restarting"), JobPodCounts(terminating=2), "Restarting"),
        (job(phase="Restarting"), JobPodCounts(), "Pending"),
        (job(phase="Restarting", retries=3), JobPodCounts(terminating=2), "Failed"),
        (job(phase="Aborting"), JobPodCounts(terminating=1), "Aborting"),
        (job(phase="Aborting"), JobPodCounts(failed=1), "Aborted"),
        (job(phase="Completing"), JobPodCounts(succeeded=1), "Completed"),
        (job(phase="Terminating"), JobPodCounts(), "Terminated"),
        (job(phase="Failed"), JobPodCounts(running=2), "Failed"),
    ],
)
def test_the_next_phase_follows_from_the_pods(given: VolcanoJob, counts: JobPodCounts, expected: str) -> None:
    assert next_phase(given, counts) == expected


@pytest.mark.parametrize("phase", POD_TRANSITIONS)
def test_pods_lead_only_to_the_phases_in_the_table_and_to_each_of_them(phase: str) -> None:
    numbers = range(3)
    seen = set()
    for pending, running, succeeded, failed, terminating in product(numbers, repeat=5):
        by_task = {"worker": {"Succeeded": succeeded}}
        counts = JobPodCounts(pending, running, succeeded, failed, terminating, by_task=by_task)
        seen |= {next_phase(job(phase=phase, retries=retries), counts) for retries in (0, 3)}
    assert seen - {phase} == POD_TRANSITIONS[phase]


def test_actions_and_pods_lead_to_phases_that_the_table_has() -> None:
    assert {phase for transition in ACTION_TRANSITIONS for phase in transition[:1]} <= POD_TRANSITIONS.keys()
    assert set(ACTION_TRANSITIONS.values()) <= POD_TRANSITIONS.keys()
    assert set().union(*POD_TRANSITIONS.values()) <= POD_TRANSITIONS.keys()


@pytest.mark.parametrize(
    ("policies", "event", "expected"),
    [
        ([{"event": "PodFailed", "action": "AbortJob"}], JobEvent("PodFailed", "worker", "p"), "AbortJob"),
        (
            [{"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}],
            JobEvent("PodEvicted", "worker"),
            "RestartJob",
        ),
        ([{"event": "*", "action": "RestartJob"}], JobEvent("TaskCompleted", "worker"), "RestartJob"),
        ([{"event": "*", "action": "RestartJob"}], JobEvent("PodPending", "worker"), None),
        ([{"exitCode": 3, "action": "CompleteJob"}], JobEvent("PodFailed", "worker", "p", 3), "CompleteJob"),
        ([{"exitCode": 3, "action": "CompleteJob"}], JobEvent("PodFailed", "worker", "p", 4), None),
        ([{"event": "PodFailed", "action": "SyncJob"}], JobEvent("PodFailed", "worker", "p"), None),
    ],
)
def test_the_first_policy_that_fits_is_taken(policies: list[Obj], event: JobEvent, expected: str | None) -> None:
    due, _ = due_action(job(policies=policies), [event], 0.0)
    assert (due.action if due is not None else None) == expected


def test_a_timeout_puts_an_action_off() -> None:
    waits = job(policies=[{"event": "PodPending", "action": "RestartJob", "timeout": "1m30s"}])
    event = JobEvent("PodPending", "worker", "p", since_s=100.0)
    assert due_action(waits, [event], 130.0) == (None, 60.0)
    assert due_action(waits, [event], 190.0)[0] == PolicyAction("RestartJob", "worker", "p")
    assert go_duration_s("1h1m1.5s") == 3661.5


def test_pods_of_an_older_version_are_no_events_any_more() -> None:
    pods = [job_pod(phase="Failed", version=0, exit_code=2), job_pod("j-worker-1", version=1)]
    assert [one.event for one in job_events(job(version=1), pods)] == ["PodRunning"]
    assert "PodFailed" in [one.event for one in job_events(job(version=0), pods)]


def test_a_pod_that_vanished_unseen_was_evicted() -> None:
    told = {"worker": {"phase": {"Running": 2}}}
    events = list(job_events(job(told=told), [job_pod()]))
    assert JobEvent("PodEvicted", "worker") in events
    smaller = job(told=told, tasks=[{"name": "worker", "replicas": 1}])
    assert JobEvent("PodEvicted", "worker") not in list(job_events(smaller, [job_pod()]))


def test_a_group_grows_as_tasks_may_start() -> None:
    tasks = [{"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 2, "dependsOn": {"name": ["ps"]}}]
    waits = job(tasks=tasks)
    assert group_spec(waits, startable(waits, []), {})["minMember"] == 1
    assert group_spec(waits, startable(waits, [job_pod("j-ps-0", "Pending")]), {})["minMember"] == 1
    assert group_spec(waits, startable(waits, [job_pod("j-ps-0")]), {})["minMember"] == 3
    begun = [job_pod("j-ps-0", "Failed"), job_pod("j-worker-0")]
    assert len(startable(waits, begun)) == 2
