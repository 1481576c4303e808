"""Applies the pod failure policy and the success policy of a job.

The first rule of the failure policy that matches decides; without a match, the failure counts.
"""

from __future__ import annotations

import msgspec

from shoal.embedded.controllers.jobs.indexes import Indexes, read_indexes
from shoal.embedded.controllers.jobs.job import ExitCodes, FailurePolicy, FailureRule, SuccessPolicy
from shoal.embedded.controllers.jobs.pods import JobPod


class FailureDecision(msgspec.Struct, frozen=True):
    action: str = "Count"
    message: str = ""
    """Why the whole job fails, or empty."""

    @property
    def counts(self) -> bool:
        return self.action != "Ignore"


_COUNT_FAILURE = FailureDecision()


def decide_failure(policy: FailurePolicy | None, pod: JobPod, has_limit_per_index: bool = False) -> FailureDecision:
    for place, rule in enumerate(policy.rules if policy is not None else ()):
        words = _match(rule, pod)
        if not words:
            continue
        if rule.action == "FailJob":
            return FailureDecision("FailJob", f"{words} matching FailJob rule at index {place}")
        if rule.action == "FailIndex" and not has_limit_per_index:
            continue
        return FailureDecision(rule.action)
    return _COUNT_FAILURE


def _match(rule: FailureRule, pod: JobPod) -> str:
    """Why the pod matches the rule, in Kubernetes' message format; empty without a match."""
    if rule.on_exit_codes is not None:
        for name, code in pod.exits:
            if _matches_exit_code(rule.on_exit_codes, name, code):
                return f"Container {name} for pod {pod.namespace}/{pod.name} failed with exit code {code}"
    else:
        wanted = {(one.type, one.status) for one in rule.on_pod_conditions or ()}
        for condition in pod.conditions:
            if condition in wanted:
                return f"Pod {pod.namespace}/{pod.name} has condition {condition[0]}"
    return ""


def _matches_exit_code(codes: ExitCodes, name: str, code: int) -> bool:
    if code == 0 or (codes.container_name is not None and codes.container_name != name):
        return False
    return (code in codes.values) is (codes.operator == "In")


def met_rule(policy: SuccessPolicy | None, completions: int, succeeded: Indexes) -> str:
    """The message of the rule that is met, or empty."""
    if policy is None or not succeeded:
        return ""
    for place, rule in enumerate(policy.rules):
        if rule.succeeded_indexes is None:
            is_met = rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
        else:
            wanted = read_indexes(rule.succeeded_indexes, completions)
            done = len(wanted & succeeded)
            is_enough = rule.succeeded_count is not None and done >= rule.succeeded_count
            is_met = bool(wanted) and (is_enough or done == len(wanted))
        if is_met:
            return f"Matched rules at index {place}"
    return ""
