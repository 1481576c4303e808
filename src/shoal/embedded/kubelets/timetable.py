"""Determines the next action of a pod and its time: the earliest timer that its stages have started.

It is pure and is called again after every change. The only stored state is the time at which each state began, so that
a new process continues where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from shoal.client.kubelet.back_off import back_off_s
from shoal.client.kubelet.pod_facts import Container, PodFacts, Probe
from shoal.client.kubelet.pod_run import ContainerRun, PodRun
from shoal.embedded.kubelets import pod_annotations as restart_requests
from shoal.embedded.kubelets.gpu_components.component_pod import ComponentPod
from shoal.embedded.kubelets.stage import Number, Stage, Stages

_POD = -1


class DueStage(NamedTuple):
    at_s: float
    stage: Stage
    container: int
    """The index of the container in the run; -1: the pod itself."""


class _PodOnNode(NamedTuple):
    run: PodRun
    facts: PodFacts
    component: ComponentPod | None


class Timetable:
    def __init__(self, stages: Stages, pull_s: float, seed: int) -> None:
        self._stages = stages
        self._pull_s = pull_s
        self._seed = seed

    def first(self, run: PodRun, facts: PodFacts, component: ComponentPod | None = None) -> DueStage | None:
        """None if no action is due. `component`: the component of a GPU operator to which the pod belongs."""
        return min(self._all(run, facts, component), key=lambda due: due.at_s, default=None)

    def _all(self, run: PodRun, facts: PodFacts, component: ComponentPod | None) -> Iterator[DueStage]:
        if run.is_over:
            return
        if run.stop_since_s is None:
            for stage in self._stages.of("pod", run.step):
                if stage.fits(facts, None, has_error=False, component=component):
                    yield from self._pod_due(stage, run, facts)
        if run.step != "running":
            return
        specs = facts.all_containers()
        for at, one in enumerate(run.containers):
            if at >= len(specs) or one.step in ("blocked", "ended"):
                continue
            if one.is_alive or run.stop_since_s is None:
                yield from self._container_dues(_PodOnNode(run, facts, component), at, specs[at])

    def _pod_due(self, stage: Stage, run: PodRun, facts: PodFacts) -> Iterator[DueStage]:
        after = stage.after
        delay_s = restart_requests.duration(facts.metadata.annotations, after.annotation) if after.annotation else None
        began_s = run.since_s
        if delay_s is None and after.number == "deadline":
            delay_s, began_s = facts.spec.active_deadline_seconds, run.admitted_s
        if delay_s is None:
            delay_s = after.wait_s
        if delay_s is not None:
            yield DueStage(began_s + delay_s + self._jitter(stage, run.uid, 0), stage, _POD)

    def _container_dues(self, pod: _PodOnNode, at: int, spec: Container) -> Iterator[DueStage]:
        run, facts, component = pod
        one = run.containers[at]
        has_error = bool(one.error)
        for stage in self._stages.of("container", one.step):
            if stage.fits(facts, one.role, has_error=has_error, component=component):
                yield from self._due(stage, pod, at, spec)
        if one.step == "running" and one.health:
            for stage in self._stages.of("health", one.health):
                if stage.fits(facts, one.role, has_error=has_error, component=component):
                    yield from self._due(stage, pod, at, spec)

    def _due(self, stage: Stage, pod: _PodOnNode, at: int, spec: Container) -> Iterator[DueStage]:
        run, facts, _ = pod
        one, after = run.containers[at], stage.after
        delay_s = (
            restart_requests.duration(facts.metadata.annotations, after.annotation, spec.name)
            if after.annotation
            else None
        )
        if delay_s is None and after.number is not None:
            delay_s = self._number(after.number, pod, one, spec)
        if delay_s is None:
            delay_s = after.wait_s
        if delay_s is None:
            return
        delay_s += self._jitter(stage, run.uid, one.restarts)
        if after.is_work:
            yield DueStage(one.paced_s + max(delay_s - one.work_s, 0.0) / max(one.pace, 1e-6), stage, at)
        else:
            yield DueStage((one.health_since_s if stage.of == "health" else one.since_s) + delay_s, stage, at)

    def _number(self, number: Number, pod: _PodOnNode, one: ContainerRun, spec: Container) -> float | None:
        run, component = pod.run, pod.component
        if number == "image-pull":
            return back_off_s(one.crashes) if one.waiting_reason else self._pull_s
        if number == "back-off":
            return back_off_s(one.crashes)
        if number == "grace":
            return run.grace_s
        if number == "readiness":
            return _probe_s(spec.readiness_probe)
        if number == "startup":
            return _probe_s(spec.startup_probe)
        return _component_s(number, component, run.uid, one, spec) if component is not None else None

    def _jitter(self, stage: Stage, uid: str, restarts: int) -> float:
        """The same value at each call."""
        most_s = stage.after.jitter_s
        if not most_s:
            return 0.0
        return most_s * crc32(f"{self._seed}/{uid}/{stage.name}/{restarts}".encode()) / 2**32


def _component_s(number: Number, component: ComponentPod, uid: str, one: ContainerRun, spec: Container) -> float | None:
    if number == "layers":
        return component.layers_s(one)
    if number == "component":
        return component.work_s(uid, one, spec)
    return component.loss_s(one) if number == "lost-layer" else None


def _probe_s(probe: Probe | None) -> float | None:
    return None if probe is None else probe.initial_delay_seconds + (probe.success_threshold - 1) * probe.period_seconds
