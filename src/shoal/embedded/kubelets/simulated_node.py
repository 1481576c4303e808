"""One simulated node: a machine, its GPUs, its pods, and whether it is reachable.

A failed node does nothing until it boots. A disconnected node continues to run its pods, but neither reads from the
server nor writes to it; when it is connected again, it handles missed deletions and reports finished pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from shoal.api.partial import LabeledMeta, MetadataOf
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.item import Item
from shoal.client.kubelet.admission import NodeCapacity, amount
from shoal.client.kubelet.node_conditions import NodeVerdict
from shoal.client.kubelet.pod_facts import PodFacts, facts_of
from shoal.client.kubelet.pod_run import PodRun
from shoal.devices.health_reports import health_verdict
from shoal.embedded.apiserver.streams.terminal import CannedTerminal, CommandOutput, CommandPlace
from shoal.embedded.gpus.claimed_devices import ClaimedDevices
from shoal.embedded.gpus.dcgm import DcgmExporter, PodName
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_gpus import NodeGpus
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.embedded.gpus.simulated_health import simulated_health
from shoal.embedded.kubelets import pod_actions
from shoal.embedded.kubelets.container_logs import lines
from shoal.embedded.kubelets.context import FleetContext
from shoal.embedded.kubelets.faults import xid_words
from shoal.embedded.kubelets.gpu_components.component_pod import ComponentPod
from shoal.embedded.kubelets.gpu_components.logs import component_lines
from shoal.embedded.kubelets.gpu_components.node_layers import NodeLayers
from shoal.embedded.kubelets.gpu_components.table import component_of
from shoal.embedded.kubelets.node_object import boot_id_of
from shoal.embedded.kubelets.node_pods import NodePods
from shoal.embedded.kubelets.node_terminal import answer
from shoal.embedded.kubelets.node_view import LogLine, Usage
from shoal.embedded.kubelets.pod_claims import PodClaims
from shoal.embedded.kubelets.pod_recovery import restored
from shoal.embedded.machines.gpu_software import Layer
from shoal.embedded.machines.machine import Machine

Obj = dict[str, Any]
Mode = Literal["up", "down", "cut", "gone"]
_LOST = 255
"""The exit code of a container that was missing after a boot."""
_SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
_MIB = 1 << 20


class SimulatedNode:
    def __init__(self, machine: Machine, gpus: NodeGpus, context: FleetContext) -> None:
        self.name = machine.name
        self.machine = machine
        self.gpus = gpus
        self.mode: Mode = "up"
        self.not_ready = ""
        """Why it accepts no pods, while it can still report that."""
        self.boot_id = boot_id_of(machine.name, "first")
        self.gpu_faults: dict[int, int] = {}
        self._exporter = DcgmExporter(gpus, context.clock.seconds()) if isinstance(gpus, DeviceManager) else None
        self._context = context
        self._has_recalled = False
        self.pods = NodePods(machine.name, NodeCapacity(machine.allocatable), gpus, context)
        self.pods.labels = self.labels
        self.pods.before_use = self._account
        self.pods.after_start = self._note_devices
        self.pods.layers = None if machine.gpu_software == "included" else NodeLayers(machine.gpu_software)
        self.follow_software()
        self._listed: dict[tuple[str, str], tuple[str, ...]] = {}
        """What nvidia-smi printed for containers with devices of claims, whose objects do not name them afterwards."""
        self.claimed: ClaimedDevices | None = None
        """The driver of resource claims, on a node that has one."""
        if isinstance(gpus, DeviceManager) and self._exporter is not None and machine.gives_by_claims:
            self.claimed = ClaimedDevices(gpus, self._exporter, context.clock.seconds)
            if context.claims is not None:
                self.pods.claims = PodClaims(machine.name, self.claimed, context.claims)

    @property
    def address(self) -> str:
        """The address of the kubelet's endpoint, if there is one; else the assigned address of the simulated
        network.
        """
        return self.pods.host_ip

    def labels(self) -> Mapping[str, str]:
        item = self._context.nodes.get("", self.name)
        return {} if item is None else item.read(MetadataOf[LabeledMeta]).metadata.labels

    # -- GPU software ----------------------------------------------------------------------------------------------

    def recall_components(self) -> None:
        """Count the component pods that ran before this process, so that their layers are there from its start."""
        if self.pods.layers is None:
            return
        now_s, found = self._context.clock.seconds(), []
        for item in self._context.pods_on(self.name):
            facts = facts_of(item)
            run = restored(item, facts, now_s) if component_of(facts.metadata.labels) is not None else None
            if run is not None:
                found.append((run, facts))
        self.pods.layers.recall(found)
        self.follow_software()

    def follow_software(self) -> None:
        if self.pods.layers is not None and isinstance(self.gpus, DeviceManager):
            self.gpus.set_software(self.pods.layers.software)

    def set_component_faults(self, faults: Mapping[str, str]) -> None:
        """The kind of fault by component."""
        if self.pods.layers is not None and faults != self.pods.layers.faults:
            self.pods.layers.faults = dict(faults)
            self.pods.wake_components()

    def _component(self, facts: PodFacts) -> ComponentPod | None:
        return None if self.pods.layers is None else self.pods.layers.pod(facts)

    def _has(self, layer: Layer) -> bool:
        return not isinstance(self.gpus, DeviceManager) or self.gpus.software.has(layer)

    # -- faults and recovery -------------------------------------------------------------------------------------------

    def fail(self) -> None:
        """The node loses its power, and all containers end."""
        self.mode = "down"
        self.pods.silence()

    def boot(self, why: str) -> None:
        """The node boots without its containers: they restart, or their pods end, according to their policies."""
        self.mode, self.not_ready, self.boot_id = "up", "", boot_id_of(self.name, why)
        self._forget_the_gone()
        if self._exporter is not None:
            self._exporter.boot(self._context.clock.seconds())
        for item in self._context.pods_on(self.name):
            # A fleet that was started while the node was down has not read them yet.
            summary = self._context.summary_of(item)
            if summary.status.start_time and item.uid not in self.pods.runs:
                self.pods.see(item, summary)
        # No pod continues before the terminating ones are known, because those must not be restarted.
        for run in tuple(self.pods.runs.values()):
            if (situation := self.pods.situation(run)) is not None:
                pod_actions.kill(situation, _LOST, "Unknown")
        self._catch_up()

    def join(self) -> None:
        """The node is connected again."""
        self.mode, self.not_ready = "up", ""
        self._forget_the_gone()
        for run in self.pods.runs.values():
            run.changes += 0 if run.is_dismissed else 1
        self._catch_up()

    def shut_down(self) -> None:
        """Stop its pods gracefully, with the reason in their statuses."""

        def end(situation: pod_actions.PodSituation) -> None:
            if not situation.run.is_over:
                said = ("True", "TerminationByKubelet", _SHUTDOWN)
                situation.run.extra = {**(situation.run.extra or {}), "DisruptionTarget": said}
                pod_actions.fail(situation, "Terminated", _SHUTDOWN)

        for uid in tuple(self.pods.runs):
            self.pods.act(uid, end)

    def set_gpu_faults(self, faults: Mapping[int, int]) -> list[str]:
        """Returns the changes as messages for Events. Programs on a GPU with a fault end."""
        words = []
        for index, xid in faults.items():
            if self.gpu_faults.get(index) != xid:
                pci = next((slot.pci for slot in self.machine.gpus if slot.index == index), "")
                said = xid_words(pci, xid)
                words.append(said)
                for uid in self.gpus.fail(index, xid):
                    self.pods.act(uid, lambda situation, said=said: pod_actions.kill(situation, 1, "Error", said))  # type: ignore[misc]
        for index in self.gpu_faults.keys() - faults.keys():
            self.gpus.mend(index)
            words.append(f"GPU {index} works again")
        self.gpu_faults = dict(faults)
        for run in self.pods.runs.values() if words else ():
            if run.uid in self.pods.grants:
                run.changes += 1
                self._context.pod_changed(self.name, run.uid)
        return words

    def recall_devices(self) -> None:
        """Restore the devices of pods that ran before this process, before GPUs get a requested layout. A layout that
        was refused because of these pods is refused again.
        """
        if self._has_recalled:
            return
        self._has_recalled = True
        for item in self._context.pods_on(self.name):
            summary = self._context.summary_of(item)
            has_begun = summary.status.start_time is not None and summary.status.phase not in TERMINAL_PHASES
            if has_begun and item.uid not in self.pods.runs:
                self.gpus.restore(item.obj())

    def _forget_the_gone(self) -> None:
        for uid, run in tuple(self.pods.runs.items()):
            if self._context.item(run) is None:
                self.pods.lose(uid)

    def _catch_up(self) -> None:
        for item in self._context.pods_on(self.name):
            self.pods.see(item)
        for uid in tuple(self.pods.runs):
            self.pods.wake(uid)

    def gpu_verdicts(self) -> tuple[NodeVerdict, ...]:
        """The condition of the GPUs, as the node agent computes it."""
        if (
            self._exporter is None
            or not isinstance(self.gpus, DeviceManager)
            or not self.machine.gpus
            or not self._has("driver")
        ):
            return ()
        at_s = self._context.clock.seconds()
        driver = SimulatedDriver(self.gpus, self._exporter, lambda: at_s)
        return (health_verdict(simulated_health(self.gpus, driver, at_s)),)

    # -- queries ----------------------------------------------------------------------------------------------

    def is_reachable(self) -> bool:
        return self.mode == "up"

    def pod(self, namespace: str, name: str) -> Obj | None:
        item = self._context.pods.get(namespace, name)
        return item.obj() if item is not None and item.uid in self.pods.runs else None

    def log(self, pod_uid: str, container: str, *, previous: bool = False) -> Sequence[LogLine]:
        found = self._found(pod_uid)
        one = found[0].container(container) if found else None
        if found is None or one is None:
            return ()
        facts = found[1]
        spec = next(spec for spec in facts.all_containers() if spec.name == container)
        component = self._component(facts)
        if component is not None and not previous:
            return component_lines(component, pod_uid, one, spec, self._context.clock.seconds())
        place = self._place(found[0], container)
        known = printed(place, self._listed.get((pod_uid, container))) if place is not None else None
        return lines(facts, spec, one, (self._context.clock.seconds(), previous), known)

    def is_running(self, pod_uid: str, container: str) -> bool:
        run = self.pods.runs.get(pod_uid)
        one = run.container(container) if run is not None else None
        return one is not None and one.is_alive and self.mode in ("up", "cut")

    def run(self, pod_uid: str, container: str, command: Sequence[str]) -> CommandOutput:
        run = self.pods.runs.get(pod_uid)
        place = self._place(run, container) if run is not None else None
        if place is None:
            return CommandOutput(stderr="the pod is not on this node\n", code=1)
        grants = self.pods.grants.get(pod_uid, ())
        item = self._context.item(run) if run is not None else None
        component = self._component(facts_of(item)) if item is not None else None
        return answer(place, command, self.gpus, grants, self._context.clock.seconds(), component)

    def _note_devices(self, pod_uid: str, container: str) -> None:
        self._listed = {key: lines for key, lines in self._listed.items() if key[0] in self.pods.runs}
        self._listed[pod_uid, container] = tuple(self.run(pod_uid, container, [_SMI]).stdout.splitlines())

    def _place(self, run: PodRun, container: str) -> CommandPlace | None:
        item = self._context.item(run)
        if item is None:
            return None
        pod, node = item.obj(), self._context.nodes.get("", self.name)
        specs = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
        spec = next((one for one in specs if one["name"] == container), specs[0])
        return CommandPlace(pod, spec, node.obj() if node is not None else None)

    def usage(self) -> Usage:
        cpu, memory = 150, 2048 * _MIB
        for _, containers in self.pod_usage():
            cpu += sum(one.cpu_milli for one in containers.values())
            memory += sum(one.memory_bytes for one in containers.values())
        return Usage(cpu, memory)

    def size(self) -> Usage:
        has = self.machine.capacity
        return Usage(amount("cpu", has["cpu"]), amount("memory", has["memory"]))

    def pod_usage(self) -> Sequence[tuple[Obj, dict[str, Usage]]]:
        found = []
        for run in self.pods.runs.values():
            item = self._context.item(run)
            if item is not None and not run.is_over and any(one.is_alive for one in run.containers):
                found.append((item.obj(), _usage(run, item)))
        return found

    def dcgm(self) -> str:
        if self._exporter is None or not self._has("dcgm-exporter"):
            return ""
        names = {run.uid: PodName(run.namespace, run.name) for run in self.pods.runs.values() if not run.is_over}
        return self._exporter.text(names, self._context.clock.seconds())

    def _account(self) -> None:
        if self._exporter is not None and self.mode != "down":
            self._exporter.account(self._context.clock.seconds())

    def _found(self, uid: str) -> tuple[PodRun, PodFacts] | None:
        run = self.pods.runs.get(uid)
        item = self._context.item(run) if run is not None else None
        return (run, facts_of(item)) if run is not None and item is not None else None


def _usage(run: PodRun, item: Item) -> dict[str, Usage]:
    """60 % of the requested CPU and 70 % of the requested memory; a small amount without requests."""
    found = {}
    for spec, one in zip(facts_of(item).all_containers(), run.containers, strict=False):
        if one.is_alive:
            asked = {**spec.resources.limits, **spec.resources.requests}
            cpu = amount("cpu", asked["cpu"]) * 6 // 10 if "cpu" in asked else 5
            memory = amount("memory", asked["memory"]) * 7 // 10 if "memory" in asked else 32 * _MIB
            found[one.name] = Usage(cpu, memory)
    return found


_SMI, _SAMPLE = "nvidia-smi", "vectoradd"
_ADDED = (
    "[Vector addition of 50000 elements]",
    "Copy input data from the host memory to the CUDA device",
    "CUDA kernel launch with 196 blocks of 256 threads",
    "Copy output data from the CUDA device to the host memory",
    "Test PASSED",
)


def printed(place: CommandPlace, listed: Sequence[str] | None = None) -> Sequence[str] | None:
    """The lines of output; None for other programs. `listed`: those of nvidia-smi, if they are known."""
    container = place.container
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if any(_SMI in word for word in words):
        if listed:
            return listed
        answer = CannedTerminal().run(place, [_SMI])
        return (answer.stdout or answer.stderr).splitlines()
    if not words and _SAMPLE in str(container.get("image", "")).lower():
        return _ADDED
    return None
