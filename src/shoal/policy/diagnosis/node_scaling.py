"""Why the autoscaler adds no node for a waiting pod: limits, no matching pool, taints of pools, or no capacity.

Cluster Autoscaler says it in Events of the pod, Karpenter in its NodePools, NodeClaims and Events.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.api.requirement import Requirement
from shoal.api.taints import HARD_EFFECTS, Taint, untolerated
from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import (
    DiagnosedCluster,
    device_requests,
    event_words,
    message_of,
    name_of,
    named,
    quantity_of,
    text_of,
    tolerations_of,
)
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict, shell_command
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import EVENT, NODE_CLAIM, NODE_POOL
from shoal.policy.object_set import key_of
from shoal.units.quantity import Quantity

_REFUSALS = (
    "NotTriggerScaleUp",
    "FailedScaleUp",
    "ScaleUpTimedOut",
    "FailedToScaleUpGroup",
    "NoCompatibleInstanceTypes",
    "NotProvisioned",
)
_ACTIVE = ("TriggeredScaleUp", "Nominated")
_OUT_OF_CAPACITY = ("InsufficientCapacity", "InsufficientCapacityError")
_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "limit",
        (
            "max node group size reached",
            "max limit reached",
            "exceed limit",
            "limits exceeded",
            "max cluster",
            "the limits of the pool",
        ),
    ),
    (
        "capacity",
        (
            "insufficientcapacity",
            "insufficient capacity",
            "out of resources",
            "out_of_resources",
            "stockout",
            "zone_resource_pool_exhausted",
            "quota exceeded",
            "in backoff after failed scale-up",
        ),
    ),
    ("taint", ("untolerated taint", "did not tolerate taint", "does not tolerate taint", "had taint")),
    (
        "pool",
        (
            "didn't match pod's node affinity",
            "didn't match pod's node affinity/selector",
            "node(s) didn't match",
            "insufficient nvidia.com/",
            "incompatible requirements",
            "no instance type satisfied",
            "incompatible with nodepool",
            "satisfies the requirements",
            "has enough resources",
            "no pool provides label",
            "which the pod wants",
            ", the pod wants",
        ),
    ),
)
_MOST_EVENTS = 3
_GPU_KEYS = ("karpenter.k8s.aws/instance-gpu-count", "karpenter.k8s.aws/instance-gpu-name", "nvidia.com/gpu.product")
_FIXES = {
    "limit": (
        "AutoscalerLimitReached",
        "the autoscaler adds no node, because a limit is reached",
        "raise the limit of the node group or NodePool",
    ),
    "capacity": (
        "NoCloudCapacity",
        "the cloud has no capacity of the machine type, or its quota is used up",
        "allow more types, zones or capacity types, or ask for a higher quota",
    ),
    "taint": (
        "PoolTaintNotTolerated",
        "the pod does not tolerate the taints of the nodes that would be added",
        "add the toleration to the pod",
    ),
    "pool": (
        "NoMatchingPool",
        "no node group or NodePool gives nodes that the pod asks for",
        "add a pool with the GPU and the labels, or correct the selector of the pod",
    ),
}


def scale_up(facts: DiagnosedCluster, pod: Obj) -> Iterator[Verdict]:
    subject = named(pod)
    if not device_requests(pod):
        return
    namespace, name = key_of(pod)
    found: dict[str, list[str]] = {}
    said = _latest(facts.events(pod))
    for event in said:
        for kind in _refused(facts, event):
            found.setdefault(kind, []).append(event_words(event))
    for kind, evidence in _of_pools(facts, pod):
        found.setdefault(kind, []).append(evidence)
    if len(found) > 1:
        # Another pool would give the nodes that the pod asks for.
        found.pop("pool", None)
    for kind, (identifier, what, fix) in _FIXES.items():
        if kind in found:
            shown = tuple(dict.fromkeys(found[kind]))[:_MOST_EVENTS]
            commands = (shell_command("kubectl describe pod {} -n {}", name, namespace), "shoal scale plan")
            yield FoundCause(identifier, subject, what, fix, shown, commands)
    if found:
        return
    if any(event.get("reason") in _ACTIVE for event in said):
        yield RuledOut(subject, "the autoscaler is adding a node for the pod")
    elif facts.is_known(EVENT):
        yield RuledOut(subject, "no Event of an autoscaler refuses the pod")
    else:
        yield NotRun(subject, "what the autoscaler says", facts.why_unknown(EVENT))


def _latest(events: list[Obj]) -> list[Obj]:
    """What an autoscaler said of a pod: since it last began to add a node, or that it does."""
    found: list[Obj] = []
    for event in events:
        reason = event.get("reason")
        if reason in _ACTIVE:
            found = [event]
        elif reason in _REFUSALS or (reason == "FailedScheduling" and "nodepool" in message_of(event).lower()):
            found = [*(one for one in found if one.get("reason") not in _ACTIVE), event]
    return found


def _refused(facts: DiagnosedCluster, event: Obj) -> list[str]:
    if event.get("reason") in _ACTIVE:
        return []
    found = _kinds(message_of(event))
    if "pool" in found and event.get("reason") == "NotProvisioned" and _has_no_capacity(facts, message_of(event)):
        # Offerings that the cloud has refused lately do not count as offerings.
        return ["capacity"]
    return found


def _has_no_capacity(facts: DiagnosedCluster, message: str) -> bool:
    """Whether the cloud refused a machine of a pool that the message names."""
    return any(
        event.get("reason") in _OUT_OF_CAPACITY and f"pool {pool_of_claim(event)}:" in message
        for event in facts.events_of("NodeClaim")
    )


def pool_of_claim(event: Obj) -> str:
    """NodeClaims are named after their pool: `gpu-x7k2p`."""
    return str(dig(event, "involvedObject", "name") or "").rpartition("-")[0]


def _kinds(message: str) -> list[str]:
    lower = message.lower()
    return [kind for kind, words in _WORDS if any(word in lower for word in words)]


def _of_pools(facts: DiagnosedCluster, pod: Obj) -> Iterator[tuple[str, str]]:
    """What Karpenter's pools exclude. A pool that offers GPUs and has nothing against the pod ends the search."""
    pools = [pool for pool in facts.all(NODE_POOL) if not dig(pool, "metadata", "deletionTimestamp")]
    if not pools:
        return
    against = []
    for pool in pools:
        reasons = list(_against(facts, pool, pod))
        if not reasons:
            return
        against.append((pool, reasons))
    matching = [(pool, reasons) for pool, reasons in against if all(kind != "pool" for kind, _ in reasons)]
    for _, reasons in matching or against:
        yield from reasons


def _against(facts: DiagnosedCluster, pool: Obj, pod: Obj) -> Iterator[tuple[str, str]]:
    name, spec = name_of(pool), dig(pool, "spec", "template", "spec")
    labels = string_keys(dig(pool, "spec", "template", "metadata", "labels"))
    selector = string_keys(dig(pod, "spec", "nodeSelector"))
    requirements = list(_requirements(spec))
    for key, value in selector.items():
        given = {**labels}
        own = [one for one in requirements if one.key == key]
        if key in given and given[key] != value:
            yield "pool", f"NodePool {name} gives {key}={given[key]}, the pod selects {value}"
        elif own and not all(one.matches({key: str(value)}) for one in own):
            yield "pool", f"NodePool {name} excludes {key}={value}, which the pod selects"
    if any(_excludes_gpus(one) for one in requirements if one.key in _GPU_KEYS):
        yield "pool", f"NodePool {name} excludes machines with GPUs"
    taint = untolerated(_taints(spec), tolerations_of(pod.get("spec")), HARD_EFFECTS)
    if taint is not None:
        yield "taint", f"NodePool {name} has the taint {taint}"
    limits, used = string_keys(dig(pool, "spec", "limits")), string_keys(dig(pool, "status", "resources"))
    for resource, limit in limits.items():
        asked, there = device_requests(pod).get(resource, 0), quantity_of(used.get(resource))
        if there + Quantity.of(asked) > quantity_of(limit) or there >= quantity_of(limit):
            words = f"{there} of at most {limit} {resource} exist, and the pod asks for {asked}"
            yield "limit", f"NodePool {name}: {words}"
    for claim in facts.all(NODE_CLAIM):
        if string_keys(dig(claim, "metadata", "labels")).get("karpenter.sh/nodepool") != name:
            continue
        for condition in maps(dig(claim, "status", "conditions")):
            words = f"{condition.get('reason') or ''} {condition.get('message') or ''}"
            if (
                condition.get("type") == "Launched"
                and condition.get("status") != "True"
                and "capacity" in _kinds(words)
            ):
                yield "capacity", text_of(f"NodeClaim {name_of(claim)}: {words}")


def _excludes_gpus(rule: Requirement) -> bool:
    """Whether it allows machines without GPUs only."""
    return rule.operator == "DoesNotExist" or (
        rule.operator == "In" and bool(rule.values) and set(rule.values) <= {"0", ""}
    )


def _requirements(spec: object) -> Iterator[Requirement]:
    for written in maps(dig(spec, "requirements")):
        try:
            yield msgspec.convert({key: value for key, value in written.items() if key != "minValues"}, Requirement)
        except msgspec.ValidationError:
            continue


def _taints(spec: object) -> list[Taint]:
    found = []
    for written in maps(dig(spec, "taints")):
        try:
            found.append(msgspec.convert(written, Taint))
        except msgspec.ValidationError:
            continue
    return found
