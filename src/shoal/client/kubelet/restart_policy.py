"""Decides whether a terminated container is restarted: by the pod's policy, the container's own policy, and its
rules."""

from __future__ import annotations

from shoal.client.kubelet.pod_facts import PodFacts
from shoal.client.kubelet.pod_run import ContainerRun, PodRun


def restarts(facts: PodFacts, run: PodRun, one: ContainerRun, code: int) -> bool:
    if one.role == "sidecar":
        return run.stop_since_s is None
    spec = next(spec for spec in facts.all_containers() if spec.name == one.name)
    if any(rule.action == "Restart" and rule.matches(code) for rule in spec.restart_policy_rules):
        return True
    policy = spec.restart_policy or facts.spec.restart_policy
    if policy == "Always":
        return one.role == "main" or code != 0
    return policy == "OnFailure" and code != 0
