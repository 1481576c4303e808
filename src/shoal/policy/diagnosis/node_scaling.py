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
    name_of,
    named,
    text_of,
    tolerations_of,
)
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict, shell_command
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import EVENT, NODE_CLAIM, NODE_POOL
from shoal.policy.object_set import key_of
from shoal.units.errors import UserError
from shoal.units.quantity import ZERO, Quantity

_REFUSALS = (
    "NotTriggerScaleUp",
    "FailedScaleUp",
    "ScaleUpTimedOut",
    "FailedToScaleUpGroup",
    "NoCompatibleInstanceTypes",
)
_ACTIVE = ("TriggeredScaleUp", "Nominated")
_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("limit", ("max node group size reached", "max limit reached", "exceed limit", "limits exceeded", "max cluster")),
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
    ("taint", ("untolerated taint", "did not tolerate taint", "had taint")),
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
    for event in facts.events("Pod", namespace, name):
        reason = str(event.get("reason") or "")
        message = str(event.get("message") or event.get("note") or "")
        if reason in _REFUSALS or (reason == "FailedScheduling" and "nodepool" in message.lower()):
            for kind in _kinds(message):
                found.setdefault(kind, []).append(event_words(event))
    for kind, evidence in _of_pools(facts, pod):
        found.setdefault(kind, []).append(evidence)
    for kind, (identifier, what, fix) in _FIXES.items():
        if kind in found:
            shown = tuple(dict.fromkeys(found[kind]))[:_MOST_EVENTS]
            commands = (shell_command("kubectl describe pod {} -n {}", name, namespace), "shoal scale plan")
            yield FoundCause(identifier, subject, what, fix, shown, commands)
    if found:
        return
    if any(event.get("reason") in _ACTIVE for event in facts.events("Pod", namespace, name)):
        yield RuledOut(subject, "the autoscaler is adding a node for the pod")
    elif facts.is_known(EVENT):
        yield RuledOut(subject, "no Event of an autoscaler refuses the pod")
    else:
        yield NotRun(subject, "what the autoscaler says", facts.why_unknown(EVENT))


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
        asked, there = device_requests(pod).get(resource, 0), _amount(used.get(resource))
        if there + Quantity.of(asked) > _amount(limit) or there >= _amount(limit):
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


def _amount(value: object) -> Quantity:
    try:
        return Quantity.parse(str(value)) if value is not None else ZERO
    except UserError:
        return ZERO
