"""Explains why a pod waits: one line as kube-scheduler would write it, then what the nearest node lacks.

The first line is the one that people know, search for and paste into tickets. It says how many nodes each rule turned
away and never what to do; the second part names one node and the room missing there, in cores, GiB and GPUs, or says
that waiting cannot help. Commonest causes come first, where kube-scheduler sorts by the digits of the count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.engine.reasons import EMPTY_GPUS, GPU_PIECE, Cause, Code, Evidence, Shortfall
from shoal.views.enumeration import few

CAUSES: Mapping[Code, str] = {
    Code.NODE_NAME: "node(s) didn't match the requested node name",
    Code.UNSCHEDULABLE: "node(s) were unschedulable",
    Code.REFUSING: "node(s) refused a pod that asked for no more and have not changed since",
    Code.AFFINITY: "node(s) didn't match Pod's node affinity/selector",
    Code.TAINTED: "node(s) had untolerated taint {{{detail}}}",
    Code.SHARING_UNSEEN: "node(s) shared with schedulers that see no parts of GPUs "
    "(keep nodes for parts with taint shoal.dev/gpu-sharing:NoSchedule)",
    Code.INSTANCES: "node(s) had MIG instances in place of GPUs, which cannot be divided",
    Code.GPU_MODEL: "node(s) had no GPU of model {detail}",
    Code.PORTS: "node(s) didn't have free ports for the requested pod ports",
    Code.INSUFFICIENT: "Insufficient {detail}",
    Code.TOO_MANY_PODS: "Too many pods",
    Code.NO_DEVICE: "node(s) didn't have {detail}",
    Code.NO_MIG_PLACE: "node(s) didn't have legal MIG places for {detail}",
    Code.FAR_APART: "node(s) didn't have {detail}",
    Code.CLAIM_UNUSABLE: "{detail}",
    Code.CLAIM_ELSEWHERE: "resourceclaim not available on the node",
    Code.CLAIMS: "cannot allocate all claims",
    Code.SPREAD: "node(s) didn't match pod topology spread constraints",
    Code.SPREAD_LABEL: "node(s) didn't match pod topology spread constraints (missing required label)",
    Code.POD_AFFINITY: "node(s) didn't match pod affinity rules",
    Code.POD_ANTI_AFFINITY: "node(s) didn't match pod anti-affinity rules",
    Code.KEPT_AWAY: "node(s) didn't satisfy existing pods anti-affinity rules",
}

NEAREST_BEGINNINGS = (
    "The cluster has no nodes yet",
    "Nodes are not examined until",
    "No node may take this pod, however empty",
    "No node that may take this pod is large enough",
    "It fits by now, for example on ",
    "The nearest node is ",
)
"""How a sentence about the nearest node begins."""

_MOST_NODES = 4
_BYTE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))
_BYTE_RESOURCES = ("memory", "ephemeral-storage")


def why(evidence: Evidence) -> str:
    """The whole answer."""
    return f"{kube_line(evidence)} {nearest_sentence(evidence)}"


def kube_line(evidence: Evidence) -> str:
    """How many nodes there are, and how many each cause turned away."""
    if evidence.nodes == 0:
        return "no nodes available to schedule pods."
    blocked = unusable(evidence)
    causes = blocked or ", ".join(f"{cause.nodes} {cause_words(cause)}" for cause in evidence.causes)
    counted = f"{evidence.fitting}/{evidence.nodes} nodes are available"
    return f"{counted}: {causes}." if causes else f"{counted}."


def unusable(evidence: Evidence) -> str:
    """What is wrong with what the pod claims, whichever node is asked: no node is counted for it."""
    return next((cause.detail for cause in evidence.causes if cause.code is Code.CLAIM_UNUSABLE), "")


def cause_words(cause: Cause) -> str:
    """What a rule says of the nodes that it turned away."""
    return CAUSES[cause.code].format(detail=cause.detail)


def nearest_sentence(evidence: Evidence) -> str:
    """The node that lacks least, and what; or why there is no such node."""
    if evidence.nodes == 0:
        return "The cluster has no nodes yet."
    if unusable(evidence):
        return "Nodes are not examined until this is corrected."
    if not evidence.nearest:
        cordoned = sum(cause.nodes for cause in evidence.causes if cause.code is Code.UNSCHEDULABLE)
        reasons = "its rules about nodes, or their taints,"
        if cordoned:
            reasons = f"its rules about nodes, their taints, and cordons ({cordoned:,} {_plural(cordoned, 1, 'node')})"
        return f"No node may take this pod, however empty: {reasons} leave none."
    if not evidence.shortfalls:
        return f"It fits by now, for example on {evidence.nearest}."
    too_small = [lack for lack in evidence.shortfalls if lack.total < lack.asked]
    if too_small:
        parts = _listed([_amounts(lack.total, lack) for lack in too_small])
        return f"No node that may take this pod is large enough, even empty: {evidence.nearest} has {parts}."
    scarce = [lack for lack in evidence.shortfalls if lack.code not in _WITHOUT_AMOUNT]
    clauses = ["has " + _listed([_amounts(lack.free, lack) + _left(lack) for lack in scarce])] if scarce else []
    clauses += [
        _WITHOUT_AMOUNT[lack.code].format(lack.resource.replace(", ", " or "))
        for lack in evidence.shortfalls
        if lack not in scarce
    ]
    return f"The nearest node is {evidence.nearest}: it {_listed(clauses)}."


def changed_nodes_sentence(nodes: Sequence[str]) -> str:
    """Of nodes that take the pod after a change; their capacity as it is says nothing."""
    if len(nodes) == 1:
        return f"The nearest node is {nodes[0]}: with the change below, it takes the pod."
    return f"The nearest nodes are {few(nodes, _MOST_NODES)}: with the changes below, they take the pod."


_WITHOUT_AMOUNT: Mapping[Code, str] = {
    Code.TOO_MANY_PODS: "takes no more pods",
    Code.PORTS: "has host port {} taken",
    Code.CLAIM_UNUSABLE: "would do, but {}",
    Code.CLAIM_ELSEWHERE: "cannot use the devices of claim {}, which other nodes have",
    Code.CLAIMS: "cannot serve {}",
    Code.SPREAD: "lies where too many of these pods are already",
    Code.SPREAD_LABEL: "does not have the topology label of the spread constraint",
    Code.POD_AFFINITY: "has no pod in its topology domain that this pod must run with",
    Code.POD_ANTI_AFFINITY: "has pods in its topology domain that this pod must not run with",
    Code.KEPT_AWAY: "has pods in its topology domain that must not run with this pod",
}


def _left(lack: Shortfall) -> str:
    return "" if lack.code in (Code.NO_DEVICE, Code.FAR_APART) else " free"


def _amounts(present: int, lack: Shortfall) -> str:
    """`12.5 of 32 cores`: both in one unit, and never so rounded that they look alike."""
    present = max(present, 0)
    asked = lack.asked
    if lack.code is Code.TOO_MANY_PODS:
        return f"room for {present} pods"
    if lack.total == 0 and lack.resource in (EMPTY_GPUS, GPU_PIECE):
        return "no GPU"
    if lack.resource == "cpu":
        return f"{_number(present / 1000, 3)} of {_number(asked / 1000, 3)} {_plural(asked, 1000, 'core')}"
    if lack.resource in _BYTE_RESOURCES or lack.resource.startswith("hugepages-"):
        return f"{_bytes(present, asked)} of {lack.resource}"
    if lack.resource == EMPTY_GPUS and present == lack.total:
        return f"{present} of {asked} {_plural(asked, 1, 'GPU')}"
    unit = "empty " + _plural(asked, 1, "GPU") if lack.resource == EMPTY_GPUS else lack.resource
    return f"{present} of {asked} {unit}"


def _bytes(present: int, asked: int) -> str:
    for size, unit in _BYTE_UNITS:
        left, right = _number(present / size, 1), _number(asked / size, 1)
        if asked >= size and left != right:
            return f"{left} of {right} {unit}"
    return f"{present} of {asked} bytes"


def _number(value: float, decimals: int) -> str:
    """Without zeros that say nothing."""
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".")


def _plural(amount: int, one: int, word: str) -> str:
    return word if amount == one else word + "s"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
