"""Finds other schedulers, queues and GPU operators in the cluster, and says what that means for an installation."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.install.adoption.projects import PROJECTS
from shoal.install.objects.configuration import scheduling_parts
from shoal.install.preflight.facts import ClusterFacts, Finding, FoundWorkload
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues

_OPERATORS = ("gpu-operator",)
_PLUGINS = ("nvidia-device-plugin-daemonset", "nvidia-device-plugin-ds", "nvidia-device-plugin")
_EXPORTERS = ("nvidia-dcgm-exporter", "dcgm-exporter")
_QUEUES = {
    "kueue-controller-manager": ("Kueue", "Kueue admits jobs; Shoal's parts for queues and jobs pause while it runs"),
    "volcano-scheduler": ("Volcano", "Volcano's pods stay with it; Shoal's part for Volcano pauses while it runs"),
    "kai-scheduler-default": ("KAI", "KAI's pods stay with it; Shoal's part for KAI pauses while it runs"),
}


def other_operator(facts: ClusterFacts) -> FoundWorkload | None:
    """NVIDIA's GPU operator."""
    return next(
        (one for one in facts.workloads if one.kind == "Deployment" and _is_called(one, _OPERATORS)),
        None,
    )


def software_findings(facts: ClusterFacts, values: ChartValues, release: Release) -> Iterator[Finding]:
    for one in facts.workloads:
        if one.kind == "Deployment" and one.name in _QUEUES:
            name, meaning = _QUEUES[one.name]
            yield Finding("note", "other software", f"{name} runs in the namespace {one.namespace}: {meaning}")
    yield from _adoptions(facts, values, release)
    operator = other_operator(facts)
    if operator is not None:
        yield Finding(
            "note",
            "other software",
            f"the GPU operator {operator.namespace}/{operator.name} runs: its device plugin and exporter are used, and "
            "the GPU stack of Shoal is not installed",
        )
        return
    if not values.get("operator.enabled"):
        return
    yield from _left_policies(facts, release)
    yield from _rivals(facts, values)


def _adoptions(facts: ClusterFacts, values: ChartValues, release: Release) -> Iterator[Finding]:
    """Values with which no program would decide about the objects of an adopted project."""
    for project in PROJECTS:
        if project.name not in facts.adopted:
            continue
        missing = [one for one in project.parts if one not in scheduling_parts(values)]
        if values.get("observe.enabled") or missing:
            lacks = "only observes" if values.get("observe.enabled") else f"does not run {', '.join(missing)}"
            yield Finding(
                "error",
                "adoption",
                f"the release has adopted {project.title}, and with these values it {lacks}",
                f"return to {project.title} first: shoal install {release.name} -n {release.namespace} "
                f"--adopt {project.name} --revert",
            )


def _left_policies(facts: ClusterFacts, release: Release) -> Iterator[Finding]:
    for policy in facts.policies:
        if not release.owns(policy.labels):
            yield Finding(
                "warning",
                "other software",
                f"the ClusterPolicy {policy.name} exists and no GPU operator runs: Shoal's operator applies it, and "
                "the values for the GPU stack have no effect",
                f"to use the values, remove it with: kubectl delete clusterpolicy {policy.name}",
            )


def _rivals(facts: ClusterFacts, values: ChartValues) -> Iterator[Finding]:
    """DaemonSets that do the same work and that no operator removes."""
    for option, names, work in (
        ("devicePlugin", _PLUGINS, "advertises nvidia.com/gpu"),
        ("dcgmExporter", _EXPORTERS, "exports metrics of the same GPUs"),
    ):
        for one in facts.workloads:
            is_rival = one.kind == "DaemonSet" and _is_called(one, names) and one.owner != "ClusterPolicy"
            if is_rival and one.managed_by != "shoal" and values.get(f"{option}.enabled"):
                yield Finding(
                    "error" if option == "devicePlugin" else "warning",
                    "other software",
                    f"the DaemonSet {one.namespace}/{one.name} {work} already",
                    f"remove it with: kubectl delete daemonset -n {one.namespace} {one.name}; or keep it with "
                    f"--set {option}.enabled=false",
                )


def _is_called(one: FoundWorkload, names: tuple[str, ...]) -> bool:
    return one.name in names or one.app in names
