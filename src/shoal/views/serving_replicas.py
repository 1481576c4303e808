"""Says why a model server has its number of replicas: the last decision of the autoscaler, and the rules it follows."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.autoscale.serving.annotations import STATUS, AnnotationError, ServingSettings, serving_settings


def replica_lines(annotations: Mapping[str, str], replicas: int | None) -> list[str]:
    """`replicas`: of the spec, as far as it is known."""
    try:
        settings = serving_settings(annotations)
    except AnnotationError as error:
        return [f"not scaled: {error}"]
    decided = annotations.get(STATUS, "")
    lines = [decided or "not decided yet; the part pod-autoscaling of `shoal run` decides, and `shoal up` does"]
    if replicas is not None and decided and not decided.startswith((f"{replicas} replicas", "not scaled")):
        lines.append(f"spec.replicas is {replicas} now")
    lines.append(_rules(settings))
    return lines


def _rules(settings: ServingSettings) -> str:
    policy = settings.policy
    rules = [
        f"between {policy.least} and {policy.most} replicas",
        f"{policy.target_concurrency:g} requests for each",
        f"at most {policy.cache_limit:.0%} of the cache in use",
    ]
    if policy.ttft_objective_s:
        rules.append(f"the first token within {policy.ttft_objective_s:g} s")
    rules.append(
        f"one fewer after {policy.window_s:g} s of low load, or after the time of a start where that is longer"
    )
    return "; ".join(rules)
