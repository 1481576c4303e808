"""Restores the run of a pod from its status, for pods that ran before this process started.

No container is restarted: a running container has run since its startedAt, and a terminated one stays terminated. The
number of consecutive crashes, which the status does not have, is derived from restart counts.
"""

from __future__ import annotations

import msgspec

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.item import Item
from shoal.client.kubelet.pod_facts import PodFacts, Slim
from shoal.client.kubelet.pod_run import ContainerRun, Ended, PodRun, new_run
from shoal.client.kubelet.pod_status import full_image
from shoal.client.kubelet.restart_policy import restarts
from shoal.client.kubelet.times import read


class _Running(Slim, frozen=True):
    started_at: str | None = None


class _RecoveredTermination(Slim, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class _RecoveredState(Slim, frozen=True):
    running: _Running | None = None
    terminated: _RecoveredTermination | None = None


class _RecoveredContainer(Slim, frozen=True):
    name: str
    image: str = ""
    restart_count: int = 0
    ready: bool = False
    started: bool | None = None
    state: _RecoveredState = _RecoveredState()
    last_state: _RecoveredState = _RecoveredState()


class _RecoveredStatus(Slim, frozen=True):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    start_time: str | None = None
    pod_ip: str = msgspec.field(default="", name="podIP")
    container_statuses: tuple[_RecoveredContainer, ...] = ()
    init_container_statuses: tuple[_RecoveredContainer, ...] = ()


class _RecoveredPod(Slim, frozen=True):
    status: _RecoveredStatus = _RecoveredStatus()


def restored(item: Item, facts: PodFacts, now_s: float) -> PodRun | None:
    """None for a pod that no kubelet has handled yet."""
    status = item.read(_RecoveredPod).status
    if status.start_time is None and status.phase == "Pending":
        return None
    run = new_run(facts, now_s)
    run.admitted_s = read(status.start_time) or now_s
    run.ip, run.sandboxes = status.pod_ip, int(bool(status.pod_ip))
    run.step, run.since_s = ("running" if run.ip else "admitted"), run.admitted_s
    said = {one.name: one for one in (*status.init_container_statuses, *status.container_statuses)}
    for one, spec in zip(run.containers, facts.all_containers(), strict=True):
        if one.name in said:
            _restore(one, said[one.name], now_s)
            image = said[one.name].image
            one.image = spec.image if image == full_image(spec.image) else image
    if status.phase in TERMINAL_PHASES:
        run.step, run.phase, run.reason, run.message = "over", status.phase, status.reason, status.message
        for one in run.containers:
            one.step = "ended"
        return run
    for one in run.containers:
        if one.step == "ended" and one.ended is not None and restarts(facts, run, one, one.ended.code):
            one.step, one.crashes = "crashed", one.restarts + 1
    return run


def _restore(one: ContainerRun, said: _RecoveredContainer, now_s: float) -> None:
    one.restarts = one.crashes = said.restart_count
    if said.last_state.terminated is not None:
        one.ended = _ended(said.last_state.terminated)
    if said.state.running is not None:
        one.step = "running"
        one.started_s = one.since_s = one.paced_s = one.health_since_s = read(said.state.running.started_at) or now_s
        one.health = "ready" if said.ready else "starting" if said.started is False else "unready"
    elif said.state.terminated is not None:
        one.ended = _ended(said.state.terminated)
        one.step, one.since_s = "ended", one.ended.finished_s
    elif one.restarts or one.ended is not None:
        one.step, one.crashes = "crashed", one.restarts + 1
        one.since_s = one.ended.finished_s if one.ended is not None else now_s


def _ended(said: _RecoveredTermination) -> Ended:
    return Ended(read(said.started_at) or 0.0, read(said.finished_at) or 0.0, said.exit_code, said.reason, said.message)
