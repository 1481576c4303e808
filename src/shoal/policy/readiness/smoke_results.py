"""Judges what smoke tests saw: the end of a pod, the return of a job, the growth of a Deployment."""

from __future__ import annotations

from shoal.policy.advice import Obj
from shoal.policy.fields import dig, string_keys
from shoal.policy.readiness.outcomes import Outcome, failed, manual, passed

_PASSED = "Test PASSED"
_ENDPOINT, _RUNTIME = "shoal.dev/endpoint", "shoal.dev/runtime"
_MOST_SCALE_S = 300.0


def is_simulated(node: Obj) -> bool:
    """Whether a node of `shoal up` only plays pods."""
    has_endpoint = _ENDPOINT in string_keys(dig(node, "metadata", "annotations"))
    return has_endpoint and _RUNTIME not in string_keys(dig(node, "metadata", "labels"))


def vectoradd_outcome(node: Obj, resource: str, fault: str, log: str) -> Outcome:
    """`fault`: why the pod failed; empty if it succeeded."""
    where = f"on node {dig(node, 'metadata', 'name')} with one {resource}"
    if fault:
        return failed(f"vectorAdd failed {where}: {fault}", "find the layer that fails", "shoal doctor cluster")
    if _PASSED in log:
        played = ("the node is simulated: no GPU computed anything",) if is_simulated(node) else ()
        return passed(f"vectorAdd passed {where}", *played)
    return manual(
        f"the pod ended without an error {where}, and its log has no line {_PASSED}",
        "check the image",
    )


def interruption_outcome(first: str, second: str, seconds: float) -> Outcome:
    """`first`, `second`: the nodes before and after."""
    return passed(f"the pod was evicted from node {first}, and ran again on node {second} after {seconds:.0f} s")


def scaling_outcome(replicas: int, seconds: float) -> Outcome:
    told = f"0 to {replicas} replicas with a GPU each were ready after {seconds:.0f} s"
    if seconds < _MOST_SCALE_S:
        return passed(told)
    fix = "keep nodes warm, use precompiled drivers and smaller images, or pull images in advance"
    return failed(told, fix, "shoal scale plan")


def stuck_outcome(what: str, seconds: float, reason: str) -> Outcome:
    """It did not get so far in time. `reason`: what a pod waits for, if it is known."""
    evidence = f"{what} after {seconds:.0f} s" + (f": {reason}" if reason else "")
    return failed(evidence, "find the cause", "shoal doctor cluster", "shoal get pods -A")
