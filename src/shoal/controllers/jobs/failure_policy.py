"""What a job's rules say of a pod that failed. The first rule that fits decides; without one, the failure counts."""

from __future__ import annotations

import msgspec

from shoal.controllers.jobs.job import ExitCodes, FailurePolicy, FailureRule
from shoal.controllers.jobs.pods import JobPod


class Judgement(msgspec.Struct, frozen=True):
    action: str = "Count"
    message: str = ""
    """Why the whole job fails; empty unless it does."""

    @property
    def counts(self) -> bool:
        return self.action != "Ignore"


_COUNTS = Judgement()


def judge(policy: FailurePolicy | None, pod: JobPod, has_limit_per_index: bool = False) -> Judgement:
    for place, rule in enumerate(policy.rules if policy is not None else ()):
        words = _fit(rule, pod)
        if not words:
            continue
        if rule.action == "FailJob":
            return Judgement("FailJob", f"{words} matching FailJob rule at index {place}")
        if rule.action == "FailIndex" and not has_limit_per_index:
            continue
        return Judgement(rule.action)
    return _COUNTS


def _fit(rule: FailureRule, pod: JobPod) -> str:
    """How the pod fits the rule, in Kubernetes' words."""
    if rule.on_exit_codes is not None:
        for name, code in pod.exits:
            if _takes(rule.on_exit_codes, name, code):
                return f"Container {name} for pod {pod.namespace}/{pod.name} failed with exit code {code}"
    else:
        wanted = {(one.type, one.status) for one in rule.on_pod_conditions or ()}
        for condition in pod.conditions:
            if condition in wanted:
                return f"Pod {pod.namespace}/{pod.name} has condition {condition[0]}"
    return ""


def _takes(codes: ExitCodes, name: str, code: int) -> bool:
    if code == 0 or (codes.container_name is not None and codes.container_name != name):
        return False
    return (code in codes.values) is (codes.operator == "In")
