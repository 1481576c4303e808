"""The history of an object has no Events of an earlier object with its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from build.manifests import pod
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.api.decode import read
from shoal.cli.live_history import Read, happenings_of, has_account, of_present_objects
from shoal.client.kind import SERVICE_ACCOUNTS
from shoal.views.history import history_lines


def _event(uid: str, *, name: str = "p", kind: str = "Pod") -> dict[str, object]:
    about = {"kind": kind, "namespace": "t", "name": name, "uid": uid}
    return {"reason": "Started", "involvedObject": about}


def test_events_of_a_deleted_namesake_are_left_out() -> None:
    present = pod("t/p", 1)
    present["metadata"]["uid"] = "new"
    events = [_event("old"), _event("new"), _event(""), _event("job", kind="Job"), _event("gone", name="q")]
    kept = list(of_present_objects(events, read(json.dumps(present))))
    assert kept == events[1:]


def _said(at: str, kind: str, name: str, reason: str, message: str, type_: str = "Normal") -> dict[str, Any]:
    about = {"kind": kind, "namespace": "t", "name": name}
    return {
        "reason": reason,
        "message": message,
        "type": type_,
        "involvedObject": about,
        "lastTimestamp": f"2026-01-01T18:{at}Z",
    }


def test_the_history_of_a_job_has_its_failed_pod_the_fault_of_the_node_and_pods_that_are_gone() -> None:
    failed = pod("t/w-0", 8, status={"phase": "Failed"})
    terminated = {"exitCode": 1, "finishedAt": "2026-01-01T18:45:10Z", "message": "NVRM: Xid: 79"}
    failed["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": terminated}}]
    events = [
        _said("45:00", "Job", "w", "SuccessfulCreate", "Created pod: w-0"),
        _said("45:01", "Pod", "w-0", "Scheduled", "Successfully assigned t/w-0 to n"),
        _said("45:02", "Pod", "w-0", "Started", "Container started"),
        _said("45:30", "Pod", "w-1", "Started", "Container started"),
        _said("45:50", "Job", "w", "SuccessfulDelete", "Deleted pod: w-1"),
    ]
    of_nodes = [
        _said("40:00", "Node", "n", "XidError", "of an earlier pod", "Warning"),
        _said("45:10", "Node", "n", "XidError", "NVRM: Xid: 79", "Warning"),
        _said("45:10", "Node", "other", "XidError", "of other pods", "Warning"),
    ]
    found = happenings_of(Read([failed], [], [], events, of_nodes), [])
    assert history_lines(found, {}, "job") == [
        "18:45:02 w-0 started",
        "18:45:10 node n: XidError: NVRM: Xid: 79",
        "18:45:10 w-0 failed: container main exited with code 1: NVRM: Xid: 79",
        "18:45:30 w-1 started",
        "18:45:50 w-1 deleted",
    ]


def test_faults_of_a_node_within_one_second_are_in_the_order_in_which_they_were_reported() -> None:
    events = [_said("45:01", "Pod", "w-0", "Scheduled", "Successfully assigned t/w-0 to n")]
    of_nodes = [
        _said("45:10", "Node", "n", "GpuMended", "GPU 3 works again"),
        _said("45:10", "Node", "n", "XidError", "NVRM: Xid: 79", "Warning"),
    ]
    for version, event in zip(("1000", "999"), of_nodes, strict=True):
        event["metadata"] = {"resourceVersion": version}
    found = happenings_of(Read([], [], [], events, of_nodes), [])
    assert history_lines(found, {}, "job") == [
        "18:45:10 node n: XidError: NVRM: Xid: 79",
        "18:45:10 node n: GpuMended: GPU 3 works again",
    ]


def test_a_container_that_was_restarted_has_its_last_end_in_the_history() -> None:
    restarted = pod("t/w-0", 8, status={"phase": "Running"})
    terminated = {"exitCode": 137, "finishedAt": "2026-01-01T18:45:10Z", "reason": "OOMKilled"}
    restarted["status"]["containerStatuses"] = [{"name": "main", "lastState": {"terminated": terminated}}]
    found = happenings_of(Read([restarted], [], [], [], []), [])
    assert history_lines(found, {}, "pod") == [
        "18:45:10 failed: container main exited with code 137 (SIGKILL, OOMKilled)"
    ]


def test_warnings_of_the_advisor_are_left_to_the_advice() -> None:
    advised = _said("45:01", "Pod", "w-0", "NoHeadlessService", "the Service does not exist", "Warning")
    advised["source"] = {"component": "shoal-advisor"}
    other = _said("45:02", "Pod", "w-0", "BackOff", "restarting", "Warning")
    found = happenings_of(Read([], [], [], [advised, other], []), [])
    assert [each.reason for each in found] == ["BackOff"]


@virtual
async def test_a_service_account_is_looked_for_in_its_namespace(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "trainer", "namespace": "default"}})
        assert await has_account(cluster.api, "default", "trainer")
        assert not await has_account(cluster.api, "default", "other")
        assert not await has_account(cluster.api, "elsewhere", "trainer")
