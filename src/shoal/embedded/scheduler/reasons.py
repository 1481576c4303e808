"""Builds kube-scheduler's messages for refused pods.

The texts are those of Kubernetes 1.36, because people, tests and tools read them. Reasons are sorted as text, as there
("13 ..." comes before "3 ..."). A refusal counts each node once, except that a node which lacks several resources
counts for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Reason(NamedTuple):
    words: str
    is_final: bool = False
    """Whether it would remain even if other pods left: preemption does not help."""


NOT_CHOSEN = Reason("node(s) didn't satisfy plugin(s) [NodeAffinity]", True)
CORDONED = Reason("node(s) were unschedulable", True)
TAINTED = Reason("node(s) had untolerated taint(s)", True)
AFFINITY = Reason("node(s) didn't match Pod's node affinity/selector", True)
PORTS = Reason("node(s) didn't have free ports for the requested pod ports")
TOO_MANY_PODS = Reason("Too many pods")
VOLUME_ELSEWHERE = Reason("node(s) didn't match PersistentVolume's node affinity", True)
NO_VOLUME = Reason("node(s) didn't find available persistent volumes to bind", True)
VOLUME_LOST = Reason("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", True)
VOLUME_TAKEN = Reason("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode")
SPREAD = Reason("node(s) didn't match pod topology spread constraints")
SPREAD_LABEL = Reason("node(s) didn't match pod topology spread constraints (missing required label)", True)
AFFINITY_NOT_MET = Reason("node(s) didn't match pod affinity rules", True)
ANTI_AFFINITY_NOT_MET = Reason("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Reason("node(s) didn't satisfy existing pods anti-affinity rules")
DEVICES_ELSEWHERE = Reason("resourceclaim not available on the node", True)
NO_DEVICES = Reason("cannot allocate all claims")

NO_NODES = "no nodes available to schedule pods"
_NO_CLAIMS = "no new claims to deallocate"
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NO_HELP = "Preemption is not helpful for scheduling"
NEVER = "preemption: not eligible due to preemptionPolicy=Never."
TERMINATING_VICTIMS = "preemption: not eligible due to a terminating pod on the nominated node."


def insufficient(resource: str, *, is_final: bool) -> Reason:
    return Reason(f"Insufficient {resource}", is_final)


class NoFeasibleNode(NamedTuple):
    """No node is feasible. `whole`: the reason for all nodes, if the pod itself is the reason."""

    nodes: int
    counts: Mapping[str, int]
    whole: str = ""

    def words(self) -> str:
        if not self.nodes:
            return NO_NODES
        said = self.whole or _listed(self.counts)
        return f"0/{self.nodes} nodes are available: {said}." if said else f"0/{self.nodes} nodes are available:"

    def with_preemption(self, what: str) -> str:
        """The refusal, and why preemption does not help."""
        return f"{self.words()} {_NO_CLAIMS}, {what}" if self.nodes else self.words()


def no_victims(nodes: int, helpless: int) -> str:
    """`helpless`: the number of nodes that would be infeasible even without pods."""
    counts = {text: count for text, count in ((_NO_VICTIMS, nodes - helpless), (_NO_HELP, helpless)) if count}
    return f"preemption: 0/{nodes} nodes are available: {_listed(counts)}."


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(sorted(f"{count} {words}" for words, count in counts.items()))
