"""Builds the message of a pending live pod: kube-scheduler's own line first, exactly, then Shoal's reason.

People, tools and tests compare the first part with Kubernetes 1.36: reasons are sorted as text, taints are not named,
GPUs are a resource like any other, and why preemption does not help follows. What it does not say (which node comes
nearest, what a gang lacks) comes behind it.

Rejected: the words of `why.py` here. They are for people who ask, name taints and put the commonest cause first.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.engine.asks import Ask
from shoal.engine.device_demand import WholeGpus
from shoal.engine.device_notation import names
from shoal.engine.gangs.evidence import GroupEvidence
from shoal.engine.reasons import Cause, Code, Evidence
from shoal.views.gangs import gang_help, gang_message, is_pod_alone
from shoal.views.why import cause_words, nearest_sentence, unusable

NO_NODES = "no nodes available to schedule pods"
_NO_CLAIMS = "no new claims to deallocate"
_NEVER = "preemption: not eligible due to preemptionPolicy=Never."
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NO_HELP = "Preemption is not helpful for scheduling"
_NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
_NOT_TOGETHER = "node(s) didn't have room for the whole gang"

FINAL = frozenset({Code.SPREAD_LABEL, Code.POD_AFFINITY, Code.CLAIM_ELSEWHERE})
"""Rules about pods and claims that would refuse the node even if no pod ran on it."""


class Outlook(msgspec.Struct, frozen=True):
    """Everything that the words are made from."""

    ask: Ask
    evidence: Evidence
    helpless: int = 0
    """Nodes that would not take the pod even if they were empty."""
    preempts: bool = True
    help: str = ""
    """What is said instead of the nearest node: conditions that no node can meet."""
    volumes: str = ""
    """What is said of nodes that would fit if the pod's volumes could be reached from there."""
    kept: str = ""
    """Pods for which capacity on the nearest node is reserved. The pods of that node do not show it."""
    tolerate: str = ""
    """Taints that stand between it and nodes which would serve it."""


def pod_words(outlook: Outlook) -> str:
    """Of a pod on its own."""
    if not outlook.evidence.nodes:
        return NO_NODES
    if blocked := unusable(outlook.evidence):
        return held_words(blocked, outlook.evidence.nodes)
    line = f"{unplaced_line(outlook)} {preemption_words(outlook)}"
    if outlook.volumes and outlook.evidence.fitting:
        return f"{line} Nodes have the capacity, but its volumes cannot be reached from them."
    if outlook.help:
        return f"{line} {outlook.help}"
    return " ".join(part for part in (line, nearest_sentence(outlook.evidence), outlook.kept, outlook.tolerate) if part)


def nomination_text(outlook: Outlook, node: str) -> str:
    """Of a pod for which others make room."""
    return f"{unplaced_line(outlook)} It is nominated to {node}, where pods are being preempted for it."


def kept_words(outlook: Outlook, node: str) -> str:
    """Of a pod of a gang that has its place, where others make room for its mates."""
    return f"{unplaced_line(outlook)} It is nominated to {node} until the other pods of its gang fit."


def held_words(why: str, nodes: int) -> str:
    """Of a pod that no node can take before something else is there, a volume, say."""
    if not nodes:
        return NO_NODES
    return (
        f"0/{nodes} nodes are available: {why.removesuffix('.')}. {_NO_CLAIMS}, preemption: 0/{nodes} nodes are "
        f"available: {nodes} {_NO_HELP}."
    )


def gang_words(gang: GroupEvidence, outlook: Outlook) -> str:
    """Of every pod of a gang that waits."""
    evidence = outlook.evidence
    if is_pod_alone(gang, evidence):
        return pod_words(outlook)
    if gang.code in _ABOUT_THE_GANG:
        said = gang_message(gang, evidence).removesuffix(".")
        line = f"0/{evidence.nodes} nodes are available: {said}." if evidence.nodes else f"{_capital(said)}."
        return f"{line} {gang_help(gang, evidence)}"
    if not evidence.nodes:
        return NO_NODES
    if blocked := unusable(evidence):
        return f"{held_words(blocked, evidence.nodes)} {gang_help(gang, evidence)}"
    more = {_NOT_TOGETHER: evidence.fitting} if evidence.fitting else {}
    explanation = _capital(gang_message(gang, evidence).partition(";")[0])
    line = f"{_line(outlook, more)} {preemption_words(outlook)}"
    return f"{line} {explanation}. {gang_help(gang, evidence)} {outlook.tolerate}".rstrip()


_ABOUT_THE_GANG = (Code.GANG_UNKNOWN, Code.GANG_MALFORMED, Code.GANG_TOO_SMALL)


def unplaced_line(outlook: Outlook) -> str:
    """How many nodes there are, and how many each reason turned away."""
    return _line(outlook, {}) if outlook.evidence.nodes else NO_NODES


def preemption_words(outlook: Outlook) -> str:
    """Why preemption does not help, in the words of kube-scheduler."""
    if not outlook.preempts:
        return f"{_NO_CLAIMS}, {_NEVER}"
    nodes = outlook.evidence.nodes
    counts = {_NO_VICTIMS: nodes - outlook.helpless, _NO_HELP: outlook.helpless}
    return f"{_NO_CLAIMS}, preemption: 0/{nodes} nodes are available: {_listed(counts)}."


def _line(outlook: Outlook, more: Mapping[str, int]) -> str:
    evidence = outlook.evidence
    counts = {**more, **({outlook.volumes: evidence.fitting} if outlook.volumes else {})}
    for cause in evidence.causes:
        words = _words(cause, outlook.ask)
        counts[words] = counts.get(words, 0) + cause.nodes
    said = _listed(counts)
    return f"0/{evidence.nodes} nodes are available: {said}." if said else f"0/{evidence.nodes} nodes are available:"


def _words(cause: Cause, ask: Ask) -> str:
    match cause.code:
        case Code.TAINTED:
            return "node(s) had untolerated taint(s)"
        case Code.NO_DEVICE if isinstance(ask.devices, WholeGpus):
            return f"Insufficient {names.GPU}"
        case Code.AFFINITY if _names_nodes(ask):
            return _NOT_NAMED
        case _:
            return cause_words(cause)


def _names_nodes(ask: Ask) -> bool:
    """Whether every term names its nodes, as the pods of DaemonSets have it: then no others are looked at."""
    terms = ask.nodes.terms
    return bool(terms) and all(
        any(one.key == "metadata.name" and one.operator == "In" for one in term.match_fields) for term in terms or ()
    )


def _listed(counts: Mapping[str, int]) -> str:
    """Sorted as text, as there: "13 ..." comes before "3 ..."."""
    return ", ".join(sorted(f"{count} {words}" for words, count in counts.items() if count))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
