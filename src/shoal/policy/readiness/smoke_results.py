"""Judges what smoke tests saw: the end of a pod, the return of a job, the growth of a Deployment."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import event_time, event_words, text_of
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.readiness.outcomes import Outcome, failed, manual, not_run, passed

_PASSED = "Test PASSED"
_ENDPOINT, _RUNTIME = "shoal.dev/endpoint", "shoal.dev/runtime"
_MOST_SCALE_S = 300.0
_MOST_EVENTS = 3


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


def job_outcome(nodes: Sequence[tuple[str, str]], wanted: int, resource: str) -> Outcome:
    """`nodes`: of each pod that ended, its node, and why it failed; empty if it succeeded."""
    where = ", ".join(sorted({node for node, _ in nodes})) or "no node"
    told = f"{len(nodes)} of {wanted} pods with one {resource} each ended, on {where}"
    faults = sorted({fault for _, fault in nodes if fault})
    if faults or len(nodes) < wanted:
        return failed((told, *faults), "find the layer that fails", "shoal doctor cluster")
    return passed(told)


def training_outcome(state: str, pods: int, seconds: float) -> Outcome:
    """`state`: the condition with which a PyTorchJob ended."""
    told = f"the PyTorchJob of {pods} pods ended as {state} after {seconds:.0f} s"
    if state == "Succeeded":
        return passed(told)
    return failed(told, "see the logs of its pods while they exist", "shoal check --smoke pytorch-single")


def no_pods_outcome(job: Obj, events: Sequence[Obj], seconds: float) -> Outcome:
    """Of a PyTorchJob that has no pods. `events`: those about it."""
    conditions = [each for each in maps(dig(job, "status", "conditions")) if each.get("status") == "True"]
    told = [text_of(f"{each.get('type')}: {_cause(each)}") for each in conditions]
    told += [event_words(event) for event in sorted(events, key=event_time)[-_MOST_EVENTS:]]
    suspended = next((each for each in conditions if each.get("type") == "Suspended"), None)
    if suspended is not None or dig(job, "spec", "runPolicy", "suspend") is True:
        why = "" if suspended is None else text_of(f": {_cause(suspended)}")
        return not_run(f"the PyTorchJob is suspended{why}")
    if not told and not maps(dig(job, "status", "conditions")):
        return not_run("no controller made pods for the PyTorchJob: the training operator does not run")
    fix = "correct what the Events and conditions name, or see the log of the training operator"
    return failed((f"the PyTorchJob has no pods after {seconds:.0f} s", *told), fix)


def _cause(condition: Obj) -> str:
    return f"{condition.get('reason') or ''}: {condition.get('message') or ''}"


def load_outcome(latencies_s: Sequence[float], faults: Sequence[str], most_ms: float) -> Outcome:
    """`most_ms`: the bar of the 99th percentile; 0 without one."""
    done = sorted(latencies_s)
    if faults:
        told = f"{len(faults)} of {len(done) + len(faults)} requests failed: {faults[0]}"
        return failed(told, "see the log of the model server", "kubectl get endpointslices -A")
    # The smallest latency that 99 % of the requests do not exceed.
    p99_ms = done[-(-99 * len(done) // 100) - 1] * 1000
    told = f"P99 {p99_ms:.0f} ms, median {done[len(done) // 2] * 1000:.0f} ms of {len(done)} requests"
    through = "through the proxy of the API server, which adds its own time"
    if not most_ms:
        return manual(f"{told}, {through}", "judge it against the goal of the service, or give --inference-p99 MS")
    if p99_ms > most_ms:
        return failed((told, through), f"bring the P99 below {most_ms:g} ms: more replicas, smaller batches")
    return passed(f"{told}; the bar is {most_ms:g} ms", through)


def interruption_outcome(first: str, second: str, seconds: float) -> Outcome:
    """`first`, `second`: the nodes before and after."""
    return passed(f"the pod was evicted from node {first}, and ran again on node {second} after {seconds:.0f} s")


def scaling_outcome(replicas: int, seconds: float) -> Outcome:
    told = f"0 to {replicas} replicas with a GPU each were ready after {seconds:.0f} s"
    if seconds < _MOST_SCALE_S:
        return passed(told)
    fix = "keep nodes warm, use precompiled drivers and smaller images, or pull images in advance"
    return failed(told, fix, "shoal scale plan")


def unseen_words(pods: Sequence[Obj]) -> str:
    """Says that no scheduler has looked at a pod, if so; empty otherwise."""
    for pod in pods:
        told = {each.get("type") for each in maps(dig(pod, "status", "conditions"))}
        if not dig(pod, "spec", "nodeName") and "PodScheduled" not in told:
            name, scheduler = dig(pod, "metadata", "name"), dig(pod, "spec", "schedulerName") or "default-scheduler"
            return text_of(f"pod {name} has no node, and no scheduler named {scheduler} has looked at it")
    return ""


def stuck_outcome(what: str, seconds: float, reason: str) -> Outcome:
    """It did not get so far in time. `reason`: what a pod waits for, if it is known."""
    evidence = f"{what} after {seconds:.0f} s" + (f": {reason}" if reason else "")
    return failed(evidence, "find the cause", "shoal doctor cluster", "shoal get pods -A")
