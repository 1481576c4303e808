"""Decides whether a change of a pod concerns its kubelet; most changes are the kubelet's own writes."""

from __future__ import annotations

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.item import Item
from shoal.client.kubelet.pod_conditions import conditions, is_ready
from shoal.client.kubelet.pod_facts import PartialPod, facts_of
from shoal.client.kubelet.pod_run import PodRun


def is_relevant_change(run: PodRun, summary: PartialPod) -> bool:
    """Its deletion was requested or shortened, another component ended it, or its spec or annotations changed."""
    if summary.metadata.deletion_timestamp is not None:
        shorter = (summary.metadata.deletion_grace_period_seconds or 0) < run.grace_s and not run.is_over
        return not run.is_deleted or shorter
    if run.is_over:
        return False
    is_changed = summary.metadata.generation != run.generation
    return is_changed or summary.status.phase in TERMINAL_PHASES or summary.restart_requests() != run.restart_requests


def is_contradicted(run: PodRun, item: Item, summary: PartialPod) -> bool:
    """Another component affects its readiness: a gate, or the controller that marked this node as lost."""
    if run.is_over:
        return False
    if not run.has_gates:
        return run.changes == run.written and summary.status.is_ready() != is_ready(run)
    facts = facts_of(item)
    said = {one.type: one.status for one in facts.status.conditions}
    return any(one["status"] != said.get(one["type"]) for one in conditions(run, facts, 0.0))
