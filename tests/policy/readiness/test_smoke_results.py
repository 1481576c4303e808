"""Smoke tests are judged by what programs print: results of nccl-tests, the log of vectorAdd, times."""

from __future__ import annotations

import pytest

from shoal.policy.readiness.all_reduce import all_reduce_outcome
from shoal.policy.readiness.smoke_objects import is_of_smoke_tests, job_object, namespace_object
from shoal.policy.readiness.smoke_results import (
    interruption_outcome,
    no_pods_outcome,
    scaling_outcome,
    stuck_outcome,
    unseen_words,
    vectoradd_outcome,
)

HEAD = """# nThread 1 nGpus 8 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    36.21    0.00    0.00      0    35.90    0.00    0.00      0
   536870912     134217728     float     sum      -1   2380.1  225.57  422.94      0   2377.4  225.82  423.42      0
  1073741824     268435456     float     sum      -1   4645.2  231.15  433.41      0   4640.0  231.41  433.89      0
"""
GOOD = f"{HEAD}# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 320.4\n"
WRONG = f"{HEAD}# Out of bounds values : 24 FAILED\n# Avg bus bandwidth    : 320.4\n"
NODE = {"metadata": {"name": "gpu-1"}}
SIMULATED = {"metadata": {"name": "gpu-1", "annotations": {"shoal.dev/endpoint": "https://127.0.0.1:1"}}}


@pytest.mark.parametrize(
    ("log", "bar", "state", "words"),
    [
        (GOOD, 300, "pass", "433.9 GB/s bus bandwidth at 1,024 MiB"),
        (GOOD, 0, "pass", "Avg bus bandwidth    : 320.4"),
        (GOOD, 450, "fail", "433.9 GB/s"),
        (WRONG, 300, "fail", "24 FAILED"),
        (WRONG, 0, "fail", "24 FAILED"),
        (HEAD.partition("\n   5368")[0], 300, "fail", "0.0 GB/s"),
        ("", 300, "not run", "the log is empty"),
        ("sh: all_reduce_perf: not found\n", 300, "not run", "its last line: sh: all_reduce_perf: not found"),
    ],
)
def test_an_all_reduce_is_judged_by_the_largest_message(log: str, bar: float, state: str, words: str) -> None:
    found = all_reduce_outcome(log, bar, "8 GPUs of node gpu-1")
    assert found.state == state
    assert words in " ".join(found.evidence)


def test_a_log_of_hostile_lines_is_no_result() -> None:
    row = " ".join(["9" * 5000, *["x"] * 12])
    assert all_reduce_outcome(f"{row}\n" * 50, 300, "x").state == "not run"


@pytest.mark.parametrize(
    ("node", "fault", "log", "state"),
    [
        (NODE, "", "[Vector addition]\nTest PASSED\nDone\n", "pass"),
        (NODE, "", "Done\n", "manual"),
        (NODE, "exit code 1: no device", "", "fail"),
        (SIMULATED, "", "Test PASSED\n", "pass"),
    ],
)
def test_vectoradd_has_to_print_that_it_passed(node: dict[str, object], fault: str, log: str, state: str) -> None:
    found = vectoradd_outcome(node, "nvidia.com/gpu", fault, log)
    assert found.state == state
    assert ("the node is simulated: no GPU computed anything" in found.evidence) == (node is SIMULATED)


@pytest.mark.parametrize(("seconds", "state"), [(12, "pass"), (299, "pass"), (300, "fail")])
def test_five_minutes_are_the_limit_of_scaling_from_zero(seconds: float, state: str) -> None:
    assert scaling_outcome(4, seconds).state == state


REFUSED = {
    "involvedObject": {"kind": "PyTorchJob", "name": "p"},
    "type": "Warning",
    "reason": "FailedCreatePod",
    "message": 'Error creating: pods "p-master-0" is forbidden: exceeded quota: gpus',
}


@pytest.mark.parametrize(
    ("spec", "conditions", "events", "state", "words"),
    [
        ({}, [], [], "not run", "the training operator does not run"),
        ({"runPolicy": {"suspend": True}}, [], [], "not run", "is suspended"),
        ({}, [{"type": "Suspended", "status": "True", "reason": "Held", "message": "m"}], [], "not run", "Held: m"),
        ({}, [{"type": "Created", "status": "True", "reason": "C", "message": "m"}], [], "fail", "Created: C: m"),
        ({}, [{"type": "Suspended", "status": "False"}], [], "fail", "after 30 s"),
        ({}, [], [REFUSED], "fail", "Event FailedCreatePod: Error creating: pods"),
    ],
)
def test_a_pytorch_job_without_pods_says_what_kept_them_away(
    spec: dict[str, object], conditions: list[object], events: list[dict[str, object]], state: str, words: str
) -> None:
    job: dict[str, object] = {"metadata": {"name": "p"}, "spec": spec, "status": {"conditions": conditions}}
    found = no_pods_outcome(job, events, 30)
    assert found.state == state
    assert words in " ".join(found.evidence)
    assert bool(found.fix) == (state == "fail")


def test_other_results_say_what_was_seen() -> None:
    assert "ran again on node b after 11 s" in interruption_outcome("a", "b", 11).evidence[0]
    assert stuck_outcome("pod x did not end", 300, "no GPU").evidence == ("pod x did not end after 300 s: no GPU",)


@pytest.mark.parametrize(
    ("status", "spec", "words"),
    [
        ({}, {}, "pod x has no node, and no scheduler named default-scheduler has looked at it"),
        ({}, {"schedulerName": "shoal"}, "pod x has no node, and no scheduler named shoal has looked at it"),
        ({"conditions": [{"type": "PodScheduled", "status": "False"}]}, {}, ""),
        ({}, {"nodeName": "gpu-1"}, ""),
    ],
)
def test_a_pod_that_no_scheduler_has_looked_at_names_the_scheduler(
    status: dict[str, object], spec: dict[str, object], words: str
) -> None:
    assert unseen_words([{"metadata": {"name": "x"}, "spec": spec, "status": status}]) == words


def test_objects_of_an_earlier_smoke_test_are_known_by_their_namespace() -> None:
    made = job_object("interruption", "nvidia.com/gpu")
    assert is_of_smoke_tests(made)
    assert is_of_smoke_tests(namespace_object())
    made["metadata"]["namespace"] = "team"
    assert not is_of_smoke_tests(made)
    assert not is_of_smoke_tests({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "shoal-smoke-test"}})
