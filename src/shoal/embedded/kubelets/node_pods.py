"""Runs the pods of one node: handles each pod when it changes and when its next stage is due, with one timer for each.

Guarantees: a pod that was running when this process started continues and is not started again; the fleet writes the
status later, from the state at that time, so that stages without delay between them cost one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.item import Item
from shoal.client.kubelet.admission import NodeCapacity, misplaced
from shoal.client.kubelet.pod_facts import PartialPod, PodFacts, facts_of
from shoal.client.kubelet.pod_run import ContainerRun, PodRun, new_run
from shoal.client.kubelet.pod_status import ContainerResource, phase_of
from shoal.devices.pod_claims import CLAIM_PREFIX
from shoal.devices.pod_refusal import Refused
from shoal.embedded.gpus.node_gpus import ContainerDevices, NodeGpus, Use
from shoal.embedded.kubelets import pod_actions, pod_annotations
from shoal.embedded.kubelets.context import FleetContext
from shoal.embedded.kubelets.gpu_components.node_layers import NodeLayers
from shoal.embedded.kubelets.pod_actions import PodSituation
from shoal.embedded.kubelets.pod_claims import PodClaims
from shoal.embedded.kubelets.pod_events import PodEvent, record_event
from shoal.embedded.kubelets.pod_recovery import restored
from shoal.embedded.kubelets.relevant_changes import is_contradicted, is_relevant_change
from shoal.embedded.kubelets.timetable import DueStage

_SOON_S = 0.3
"""A pod that will run within this time is not reported as pending first."""
_CLAIMS_AGAIN_S = 0.5
"""The delay before claims that could not be prepared are tried again."""
_MOST_STEPS = 1_000
"""The maximum number of steps of a pod at one time, because stages of users may form a cycle."""


class NodePods:
    def __init__(self, node: str, capacity: NodeCapacity, gpus: NodeGpus, context: FleetContext) -> None:
        self.runs: dict[str, PodRun] = {}
        self.grants: dict[str, tuple[ContainerDevices, ...]] = {}
        self.host_ip = ""
        """The node's address, once it has one."""
        self.labels: Callable[[], Mapping[str, str]] = dict
        """The node's labels now."""
        self.before_use: Callable[[], object] = lambda: None
        """Called before programs start or stop using GPUs."""
        self.after_start: Callable[[str, str], object] = lambda *_: None
        """Called with the uid of a pod and the name of its container that began to use devices of claims."""
        self.claims: PodClaims | None = None
        """None: the node has no driver of resource claims."""
        self.layers: NodeLayers | None = None
        """None: the node has all GPU software from the start, and component pods change nothing."""
        self._unprepared: dict[str, str] = {}
        """Why pods wait for their claims, by uid."""
        self._node = node
        self._capacity = capacity
        self._gpus = gpus
        self._context = context
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._is_stirred = False

    # -- changes from the server
    # -----------------------------------------------------------------------------------------

    def see(self, item: Item, summary: PartialPod | None = None) -> None:
        """Handle a new or changed pod of this node."""
        summary = summary or self._context.summary_of(item)
        run = self.runs.get(item.uid)
        is_deleted = summary.metadata.deletion_timestamp is not None
        if run is not None and run.is_over and summary.status.phase in TERMINAL_PHASES:
            # The end was written. Its answer may arrive later than the next pod, which waited for the devices.
            self._release(item.uid)
        if run is not None and not is_relevant_change(run, summary):
            if is_deleted or not is_contradicted(run, item, summary):
                return
            run.changes += 1
        facts = facts_of(item)
        if run is None:
            run = self._begin(item, facts)
            run.changes += is_contradicted(run, item, summary)
        run.restart_requests = summary.restart_requests()
        situation = PodSituation(run, facts, self, self._context.clock.seconds())
        if run.generation != summary.metadata.generation:
            # The status contains the observed generation.
            run.changes += bool(run.generation)
            run.generation = summary.metadata.generation
            pod_actions.follow_images(situation)
        if summary.status.phase in TERMINAL_PHASES and not run.is_over:
            # Another component has ended it (the pod garbage collector, for example).
            run.phase = summary.status.phase
            pod_actions.stop(situation, 0.0)
        if is_deleted:
            run.is_deleted = True
            grace_s = summary.metadata.deletion_grace_period_seconds
            pod_actions.stop(situation, run.grace_s if grace_s is None else float(grace_s))
            if run.is_over and not run.is_dismissed:
                run.changes += 1
        self._go_on(situation)

    def begin_again(self, item: Item) -> None:
        """Another client wrote before this run did: start again from that content."""
        self.lose(item.uid)
        self.see(item)

    def lose(self, uid: str) -> None:
        """The pod was deleted from the server: kill its containers."""
        run = self.runs.pop(uid, None)
        if run is None:
            return
        self._cancel(uid)
        self._unprepared.pop(uid, None)
        if not run.is_over:
            self.over(run)
        self._release(uid)
        self._repace()
        if self.layers is not None and self.layers.forget(uid):
            self.follow_layers()

    def reported(self, run: PodRun) -> None:
        """The server has stored the status. Only then are the devices of a finished pod given to others: if this
        process ends, the next one reads from the status which devices are in use.
        """
        if run.is_over:
            self._release(run.uid)

    def _release(self, uid: str) -> None:
        if self.claims is not None:
            self.claims.release(uid)
        if self.grants.pop(uid, None) is not None:
            self.before_use()
            self._gpus.release(uid)
            self._is_stirred = True

    def _begin(self, item: Item, facts: PodFacts) -> PodRun:
        now_s = self._context.clock.seconds()
        known = restored(item, facts, now_s)
        run = self.runs[item.uid] = known or new_run(facts, now_s)
        run.base = item.version
        run.grace_s = float(facts.spec.termination_grace_period_seconds)
        names = [one.name for one in run.containers]
        for words in pod_annotations.complaints(facts.metadata.annotations, names) if known is None else ():
            self.record_event(run, "InvalidAnnotation", words, "Warning")
        if known is None or known.is_over:
            return run
        self._keep_address(run, facts)
        self._capacity.take(run.uid, facts, is_forced=True)
        if granted := (*self._gpus.restore(item.obj()), *self._claimed(item)):
            self.grants[run.uid] = granted
        situation = PodSituation(run, facts, self, now_s)
        for one in run.containers:
            if one.is_alive:
                one.error = self.started(run, one, facts) or ""
        pod_actions.advance(situation)
        return run

    def _keep_address(self, run: PodRun, facts: PodFacts) -> None:
        """Keep the address of a pod that ran before. An address outside the range, as in earlier versions, or one of
        another pod is replaced.
        """
        is_own = run.ip == self.host_ip if facts.spec.host_network else self._context.addresses.claim(run.ip, run.uid)
        if run.ip and not is_own:
            run.ip = self.address(run, facts) or run.ip
            run.changes += 1

    # -- time ---------------------------------------------------------------------------------------------------------

    def situation(self, run: PodRun) -> PodSituation | None:
        item = self._context.item(run)
        return None if item is None else PodSituation(run, facts_of(item), self, self._context.clock.seconds())

    def wake(self, uid: str) -> None:
        self.act(uid, lambda _: None)

    def act(self, uid: str, what: Callable[[PodSituation], None]) -> None:
        """Apply an action to a pod from outside its stages, then continue its stages."""
        run = self.runs.get(uid)
        situation = self.situation(run) if run is not None else None
        if situation is not None:
            what(situation)
            self._go_on(situation)

    def silence(self) -> None:
        """Stop all stages until the pods are woken again."""
        for uid in tuple(self._timers):
            self._cancel(uid)

    def is_quiet(self) -> bool:
        """Whether all pods have finished and the server has their statuses."""
        return all(run.is_over and run.changes == run.written for run in self.runs.values())

    def _go_on(self, situation: PodSituation) -> None:
        run = situation.run
        if run.step == "bound" and run.stop_since_s is None and not self._are_claims_prepared(run):
            self._cancel(run.uid)
            self._timers[run.uid] = self._context.clock.call_later(_CLAIMS_AGAIN_S, lambda: self.wake(run.uid))
            return
        is_component = self.layers is not None and self.layers.note(run, situation.facts)
        due = self._due(situation)
        steps = 0
        while due is not None and due.at_s <= situation.now_s + 1e-6 and steps < _MOST_STEPS:
            pod_actions.play(situation, due)
            due = self._due(situation)
            steps += 1
        self._cancel(run.uid)
        if due is not None:
            wait_s = max(due.at_s - situation.now_s, 0.001 if steps < _MOST_STEPS else 1.0)
            self._timers[run.uid] = self._context.clock.call_later(wait_s, lambda: self.wake(run.uid))
        is_soon = due is not None and due.at_s - situation.now_s <= _SOON_S
        if run.changes != run.written and not (is_soon and phase_of(run) == "Pending"):
            self._context.pod_changed(self._node, run.uid)
        self._repace()
        if is_component:
            self.follow_layers()

    def _due(self, situation: PodSituation) -> DueStage | None:
        component = None if self.layers is None else self.layers.pod(situation.facts)
        return self._context.timetable.first(situation.run, situation.facts, component)

    def follow_layers(self) -> None:
        """Compute the layers of GPU software again. If they changed, each component pod may go on or have to wait."""
        if self.layers is not None and self.layers.follow(self.runs):
            self._context.software_changed(self._node)
            self.wake_components()

    def wake_components(self) -> None:
        for uid in () if self.layers is None else self.layers.uids():
            self.wake(uid)

    def _cancel(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def _repace(self) -> None:
        """Compute due times again after programs on shared GPUs started or ended, because the speed of the others
        changed.
        """
        if not self._is_stirred:
            return
        self._is_stirred = False
        now_s = self._context.clock.seconds()
        for uid in tuple(self.grants):
            run = self.runs.get(uid)
            if run is None or run.is_over:
                continue
            pace = self._gpus.pace(uid)
            alive = [one for one in run.containers if one.is_alive and one.pace != pace]
            for one in alive:
                one.set_pace(pace, now_s)
            if alive:
                self.wake(uid)

    # -- the node's part in the lifecycle of pods
    # ---------------------------------------------------------------------------

    def admit(self, run: PodRun, facts: PodFacts) -> Refused | None:
        item = self._context.item(run)
        granted = self._gpus.admit(item.obj()) if item is not None and _asks_devices(facts) else ()
        if isinstance(granted, Refused):
            return granted
        granted = (*granted, *self.grants.get(run.uid, ()))
        refused = None
        if facts.spec.node_selector or facts.spec.affinity:
            refused = misplaced(facts, self._node, self.labels())
        refused = refused or self._capacity.take(run.uid, facts)
        if refused is not None:
            self._gpus.release(run.uid)
            self._release(run.uid)
            return refused
        if granted:
            self.grants[run.uid] = granted
        return None

    def address(self, run: PodRun, facts: PodFacts) -> str:
        return self.host_ip if facts.spec.host_network else self._context.addresses.take(run.uid)

    def started(self, run: PodRun, one: ContainerRun, facts: PodFacts) -> str | None:
        if not self._has_devices(run.uid, one.name):
            return None
        said = facts.metadata.annotations
        util = pod_annotations.share(said, "gpu-util", one.name)
        memory = pod_annotations.mebibytes(said, "gpu-memory", one.name)
        self._is_stirred = True
        self.before_use()
        error = self._gpus.start(run.uid, one.name, Use(Use().util if util is None else util, memory))
        one.pace = self._gpus.pace(run.uid)
        if any(grant.resource.startswith(CLAIM_PREFIX) for grant in self.grants[run.uid]):
            self.after_start(run.uid, one.name)
        return error

    def stopped(self, run: PodRun, one: ContainerRun) -> None:
        if self._has_devices(run.uid, one.name):
            self.before_use()
            self._gpus.stop(run.uid, one.name)
            self._is_stirred = True

    def over(self, run: PodRun) -> None:
        self._capacity.give(run.uid)
        self._context.addresses.give(run.ip, run.uid)

    def record_event(self, run: PodRun, reason: str, message: str, type_: str, container: str = "") -> None:
        record_event(self._context, self._node, run, PodEvent(reason, message, type_, container))

    # -- claims -------------------------------------------------------------------------------------------------------

    def _are_claims_prepared(self, run: PodRun) -> bool:
        """Prepares them, if they are not. A failure that lasts becomes an Event, and the attempt is repeated."""
        item = self._context.item(run)
        if self.claims is None or item is None or run.uid in self.grants:
            return True
        found = self.claims.prepare(item.obj())
        if isinstance(found, str):
            # The claim may be older here than the binding of the pod.
            if self._unprepared.get(run.uid) == found:
                words = f"Failed to prepare dynamic resources: {found}"
                self.record_event(run, "FailedPrepareDynamicResources", words, "Warning")
            self._unprepared[run.uid] = found
            return False
        self._unprepared.pop(run.uid, None)
        if found:
            self.grants[run.uid] = found
            # The MIG layout may have changed.
            self._context.node_changed(self._node)
        return True

    def _claimed(self, item: Item) -> tuple[ContainerDevices, ...]:
        """The devices that a pod from before the start of this process has by its claims."""
        found = self.claims.prepare(item.obj()) if self.claims is not None else ()
        return () if isinstance(found, str) else found

    # -- devices ------------------------------------------------------------------------------------------------------

    def held(self, run: PodRun) -> dict[str, list[ContainerResource]]:
        found: dict[str, list[ContainerResource]] = {}
        for grant in self.grants.get(run.uid, ()):
            devices = tuple((device, self._gpus.is_healthy(device)) for device in grant.device_ids)
            found.setdefault(grant.container, []).append(ContainerResource(grant.resource, devices))
        return found

    def _has_devices(self, uid: str, container: str) -> bool:
        return any(grant.container == container for grant in self.grants.get(uid, ()))


def _asks_devices(facts: PodFacts) -> bool:
    return any("/" in name for one in facts.all_containers() for name in one.resources.limits)
