"""Decides about a node that waits for jobs or for its validation, with the start of the wait in an annotation.

The start is kept on the Node, so that a restarted operator continues the same wait. A value that is not a time leaves
the node as it is and names the annotation; NVIDIA's operator ends its pass there, and no later node makes progress.
"""

from __future__ import annotations

from shoal.operator.upgrades.decision import UpgradeDecision, allowed_load, ends, moves, removed, stays
from shoal.operator.upgrades.nodes import UpgradeNode
from shoal.operator.upgrades.policy import UpgradeOptions, UpgradePolicy
from shoal.operator.upgrades.states import JOBS_SINCE, VALIDATION_SINCE, UpgradeState
from shoal.units.errors import excerpt

VALIDATION_TIMEOUT_S = 600


def wait_for_jobs(node: UpgradeNode, policy: UpgradePolicy, options: UpgradeOptions, now_s: int) -> UpgradeDecision:
    if policy.jobs is None:
        following = UpgradeState.POD_DELETION if options.deletes_pods else UpgradeState.DRAIN_REQUIRED
        return moves(node, following, "no jobs to wait for: the policy has no podSelector")
    active = [pod.name for pod in node.pods if pod.is_active and policy.jobs.matches(pod.labels)]
    if not active:
        return moves(node, UpgradeState.POD_DELETION, "all jobs have ended", removed(node, JOBS_SINCE))
    what = f"{len(active)} pods of jobs are active, first {active[0]}"
    if not policy.jobs_timeout_s:
        return stays(node, what)
    since = node.annotations.get(JOBS_SINCE)
    if since is None:
        return stays(node, what, {JOBS_SINCE: str(now_s)})
    if not _is_time(since):
        return stays(node, _unreadable(JOBS_SINCE, since))
    if now_s <= int(since) + policy.jobs_timeout_s:
        return stays(node, what)
    late = f"{what}, after more than {policy.jobs_timeout_s} s"
    return moves(node, UpgradeState.POD_DELETION, late, {JOBS_SINCE: None})


def validate(node: UpgradeNode, options: UpgradeOptions, now_s: int) -> UpgradeDecision:
    """A driver that was restarted meanwhile may wait for its load: it is allowed to.

    The pods are examined in order. A ready pod clears the start of the wait, also if a later pod is not ready.
    """
    changes = allowed_load(node)
    if not options.validates:
        return ends(node, "no validation is configured", changes)
    pods = [pod for pod in node.pods if options.validation_pods.matches(pod.labels)]
    if not pods:
        return stays(node, "no pod validates the node", changes)
    since = node.annotations.get(VALIDATION_SINCE)
    for pod in pods:
        if not pod.is_ready:
            return _unvalidated(node, f"validation pod {pod.name} is not ready", since, now_s, changes)
        changes |= removed(node, VALIDATION_SINCE)
        since = None
    return ends(node, "the driver is validated", changes)


def _unvalidated(
    node: UpgradeNode, what: str, since: str | None, now_s: int, changes: dict[str, str | None]
) -> UpgradeDecision:
    if since is None:
        return stays(node, what, {**changes, VALIDATION_SINCE: str(now_s)})
    if not _is_time(since):
        return stays(node, _unreadable(VALIDATION_SINCE, since), changes)
    if now_s <= int(since) + VALIDATION_TIMEOUT_S:
        return stays(node, what, changes)
    late = f"{what}, after more than {VALIDATION_TIMEOUT_S} s"
    return moves(node, UpgradeState.FAILED, late, {**changes, VALIDATION_SINCE: None})


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _unreadable(name: str, text: str) -> str:
    return f"annotation {name} is {excerpt(text)}, not a Unix time; remove the annotation"
