"""Executes the actions of pod stages with the rules of the kubelet.

Guarantees: containers start in the kubelet's order (init containers one by one, sidecars before those after them, then
all others at once), end once per start, and a finished pod stays finished. Devices are allocated at admission, used
between a container's start and end, and released when the pod has finished for any reason.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from shoal.client.kubelet.back_off import back_off_s
from shoal.client.kubelet.pod_facts import Container, PodFacts
from shoal.client.kubelet.pod_run import ContainerRun, Ended, PodRun
from shoal.client.kubelet.restart_policy import restarts
from shoal.devices.pod_refusal import Refused
from shoal.embedded.kubelets import pod_annotations as restart_requests
from shoal.embedded.kubelets.addresses import EXHAUSTED
from shoal.embedded.kubelets.timetable import DueStage

_FRESH_AFTER_S = 600.0
"""The run time after which the back-off of a container is reset."""
_SANDBOX_AGAIN_S = 10.0
"""The delay before a pod without an address is tried again."""
KILLED, TERMINATED = 137, 143
IMAGE_BACK_OFF = "ImagePullBackOff"


class Host(Protocol):
    """The node, as the lifecycle of its pods uses it."""

    def admit(self, run: PodRun, facts: PodFacts) -> Refused | None: ...

    def address(self, run: PodRun, facts: PodFacts) -> str:
        """The address of the pod; empty if none is left."""
        ...

    def started(self, run: PodRun, one: ContainerRun, facts: PodFacts) -> str | None:
        """Called when a program starts; returns its error, if it has one."""
        ...

    def stopped(self, run: PodRun, one: ContainerRun) -> None: ...

    def over(self, run: PodRun) -> None: ...

    def record_event(self, run: PodRun, reason: str, message: str, type_: str, container: str = "") -> None:
        """An Event about the pod."""
        ...


class PodSituation(NamedTuple):
    """One pod on its node at one time."""

    run: PodRun
    facts: PodFacts
    host: Host
    now_s: float


def play(situation: PodSituation, due: DueStage) -> None:
    """Execute a due stage."""
    run, facts, host, now_s = situation
    stage = due.stage
    one = run.containers[due.container] if due.container >= 0 else None
    for event in stage.next.events:
        host.record_event(
            run, event.reason, _filled(event.message, situation, due), event.type, one.name if one else ""
        )
    for condition in stage.next.conditions:
        message = _filled(condition.message, situation, due)
        run.extra = {**(run.extra or {}), condition.type: (condition.status, condition.reason, message)}
    verb = stage.next.verb
    if one is None:
        _play_pod(situation, verb, stage.next.reason, stage.next.message)
    elif stage.of == "health":
        one.health = "unready" if verb == "started" else "ready" if verb == "ready" else "failing"
        one.health_since_s = now_s
    elif verb == "start":
        _start(situation, one, facts.all_containers()[due.container])
    elif verb == "refuse":
        one.waiting_message = _filled(stage.next.message, situation, due)
        one.waiting_reason = IMAGE_BACK_OFF if one.waiting_reason else stage.next.reason
        # The first attempt is repeated after ten seconds.
        one.crashes, one.since_s = max(one.crashes, 1) + 1, now_s
    elif verb == "restart":
        one.restarts += 1
        _start(situation, one, facts.all_containers()[due.container])
    else:
        code = (
            restart_requests.whole(facts.metadata.annotations, stage.next.code_from, one.name)
            if stage.next.code_from
            else None
        )
        at_s = max(min(due.at_s, now_s), one.started_s)
        message = _filled(stage.next.message, situation, due) or one.error
        code = stage.next.code if code is None else code
        end(
            situation,
            one,
            Ended(one.started_s, at_s, code, stage.next.reason or ("Error" if code else "Completed"), message),
        )
    advance(situation)
    run.changes += 1


def stop(situation: PodSituation, grace_s: float) -> None:
    """Stop all containers with this grace period. On a repeated call, the shorter period applies."""
    run, now_s = situation.run, situation.now_s
    if run.is_over:
        return
    if run.stop_since_s is None or grace_s < run.grace_s:
        run.grace_s = grace_s
    run.changes += 1
    if run.stop_since_s is None:
        run.stop_since_s = now_s
    for one in run.containers:
        if one.step == "running":
            one.step, one.since_s, one.health = "stopping", now_s, "unready"
            situation.host.record_event(run, "Killing", f"Stopping container {one.name}", "Normal", one.name)
    advance(situation)


def follow_images(situation: PodSituation) -> None:
    """Restart containers whose image was changed, regardless of the restart policy."""
    run, now_s = situation.run, situation.now_s
    if run.is_over or run.stop_since_s is not None:
        return
    for one, spec in zip(run.containers, situation.facts.all_containers(), strict=False):
        if one.role == "init" or not one.image or one.image == spec.image:
            continue
        if one.step == "crashed":
            # The back-off belongs to the container's definition.
            one.crashes, one.since_s = 1, now_s
        if one.step == "running":
            one.step, one.since_s, one.health, one.is_replaced = "stopping", now_s, "unready", True
            words = f"Container {one.name} definition changed, will be restarted"
            situation.host.record_event(run, "Killing", words, "Normal", one.name)
            run.changes += 1


def fail(situation: PodSituation, reason: str, message: str) -> None:
    """Stop the pod gracefully with the phase Failed."""
    run = situation.run
    if not run.is_over:
        run.phase, run.reason, run.message = "Failed", reason, message
        stop(situation, float(situation.facts.spec.termination_grace_period_seconds))


def kill(situation: PodSituation, code: int, reason: str, message: str = "") -> None:
    """End all containers at once; restarts are decided as after any exit."""
    for one in situation.run.containers:
        if one.is_alive:
            end(situation, one, Ended(one.started_s, situation.now_s, code, reason, message))
    advance(situation)
    situation.run.changes += 1


def end(situation: PodSituation, one: ContainerRun, ended: Ended) -> None:
    """Handle the end of a container's run."""
    run, facts, now_s = situation.run, situation.facts, situation.now_s
    long_run = ended.finished_s - ended.started_s >= _FRESH_AFTER_S
    one.ended, one.error, one.health = ended, "", ""
    one.crashes = 1 if long_run or one.is_replaced else one.crashes + 1
    is_wanted = one.is_replaced or restarts(facts, run, one, ended.code)
    stays = run.stop_since_s is not None or not is_wanted
    one.step, one.since_s = "ended" if stays else "crashed", ended.finished_s if stays else now_s
    situation.host.stopped(run, one)
    if not stays and back_off_s(one.crashes):
        words = f"Back-off restarting failed container {one.name} in pod {run.name}_{run.namespace}({run.uid})"
        situation.host.record_event(run, "BackOff", words, "Warning", one.name)


def _play_pod(situation: PodSituation, verb: str, reason: str, message: str) -> None:
    run, facts, host, now_s = situation
    if verb == "admit":
        run.admitted_s = run.since_s = now_s
        refused = host.admit(run, facts)
        if refused is not None:
            run.phase, run.reason = "Failed", refused.reason
            run.message = f"Pod was rejected: {refused.message}"
            host.record_event(run, refused.reason, refused.message, "Warning")
            _over(situation)
            return
        run.step = "admitted"
    elif verb == "sandbox":
        run.ip = host.address(run, facts)
        if not run.ip:
            host.record_event(run, "FailedCreatePodSandBox", EXHAUSTED, "Warning")
            run.since_s = now_s + _SANDBOX_AGAIN_S
            return
        run.step, run.since_s = "running", now_s
        run.sandboxes += 1
    elif verb == "fail":
        fail(situation, reason, message)


def _start(situation: PodSituation, one: ContainerRun, spec: Container) -> None:
    run, facts, host, now_s = situation
    if one.waiting_reason:
        one.waiting_reason, one.waiting_message, one.crashes = "", "", 0
    one.step, one.since_s, one.started_s = "running", now_s, now_s
    one.work_s, one.paced_s = 0.0, now_s
    one.image, one.is_replaced = spec.image, False
    one.health, one.health_since_s = ("starting" if spec.startup_probe else "unready"), now_s
    one.error = host.started(run, one, facts) or ""
    pulled = f'Container image "{spec.image}" already present on machine and can be accessed by the pod'
    host.record_event(run, "Pulled", pulled, "Normal", one.name)
    host.record_event(run, "Created", "Container created", "Normal", one.name)
    host.record_event(run, "Started", "Container started", "Normal", one.name)


def advance(situation: PodSituation) -> None:
    """Let the next containers start, and finish a stopping pod when all its containers have stopped."""
    run, now_s = situation.run, situation.now_s
    if run.is_over:
        return
    if run.stop_since_s is not None:
        if not any(one.is_alive for one in run.containers):
            _over(situation)
        return
    if run.step != "running":
        return
    is_clear = _prepare(situation)
    mains = run.of("main")
    for one in mains:
        if is_clear and one.step == "blocked":
            one.step, one.since_s = "waiting", now_s
    if run.stop_since_s is None and all(one.step == "ended" for one in mains):
        run.phase = _outcome(run)
        stop(situation, float(situation.facts.spec.termination_grace_period_seconds))


def _prepare(situation: PodSituation) -> bool:
    """Start the next init container or sidecar; returns whether all of them are done."""
    run = situation.run
    for one in run.containers:
        if one.role == "main":
            return True
        if one.step == "blocked":
            one.step, one.since_s = "waiting", situation.now_s
        if one.role == "init" and one.step == "ended" and one.ended is not None:
            if one.ended.code == 0:
                continue
            run.phase = "Failed"
            stop(situation, run.grace_s)
            return False
        if one.role == "init" or not (one.is_started and one.step == "running"):
            return False
    return True


def _over(situation: PodSituation) -> None:
    run = situation.run
    is_prepared = run.step == "running" and all(one.ended is not None or one.role == "main" for one in run.containers)
    for one in run.containers:
        if one.step not in ("ended", "crashed") and is_prepared and not _has_failed(run):
            words = "The container could not be located when the pod was terminated"
            one.ended = Ended(0.0, 0.0, KILLED, "ContainerStatusUnknown", words)
        one.step = "ended"
    run.phase = run.phase or _outcome(run)
    run.step, run.since_s = "over", situation.now_s
    situation.host.over(run)


def _has_failed(run: PodRun) -> bool:
    """Whether the pod failed before its main containers started."""
    return any(one.role == "init" and one.ended is not None and one.ended.code for one in run.containers)


def _outcome(run: PodRun) -> str:
    ended = [one.ended for one in run.containers if one.role == "main"]
    return "Succeeded" if all(one is not None and one.code == 0 for one in ended) else "Failed"


def _filled(words: str, situation: PodSituation, due: DueStage) -> str:
    if "{" not in words:
        return words
    spec = situation.facts.all_containers()[due.container] if due.container >= 0 else None
    filling = {
        "{container}": spec.name if spec else "",
        "{image}": spec.image if spec else "",
        "{pod}": situation.run.name,
        "{namespace}": situation.run.namespace,
    }
    for name, value in filling.items():
        words = words.replace(name, value)
    return words
