"""Makes this machine a node of the embedded cluster, which runs real pods as processes: `shoal up --this-machine`."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from shoal.agent.features.label_source import LabelSource, MachineFiles, SourceSettings
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.kubelet import Admission, Kubelet
from shoal.agent.kubelet.machine import this_machine
from shoal.agent.kubelet.node import RUNTIME_LABEL, NodeDescription, NodeOfThisMachine
from shoal.agent.kubelet.pod_on_node import NodeParts, limits_of
from shoal.agent.kubelet.pod_store import PodStore
from shoal.agent.kubelet.process.runtime import ProcessRuntime
from shoal.agent.kubelet.process.support import ALLOWED, LABEL, RUNTIME_CLASS, ProcessUser, unsupported
from shoal.client.informers import Informers
from shoal.client.kind import CONFIG_MAPS, NAMESPACES, Kind
from shoal.client.port import Api
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.pod_refusal import Refused
from shoal.devices.port import GpuDriver
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION as ENDPOINT
from shoal.embedded.kubelets.endpoint import api_server_trust
from shoal.embedded.kubelets.endpoint.endpoint import Endpoint, EndpointSettings
from shoal.embedded.kubelets.node_view import Usage
from shoal.units.errors import ShoalError, UserError
from shoal.wiring.gpu_driver import open_driver
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.this_machine_view import ThisMachineView

Obj = dict[str, Any]
_log = logging.getLogger("shoal.this-machine")
_RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", is_namespaced=False)
_MACHINE_TYPE = Path("/sys/class/dmi/id/product_name")
WARNING = (
    "this machine runs process pods: in namespaces with the label "
    f"{LABEL}={ALLOWED}, every user who may create pods runs programs as %s on this machine, without isolation"
)


class StartedMachine(NamedTuple):
    node: str
    port: int
    """Of the kubelet, on loopback."""
    has_taken_over: asyncio.Event
    """Set when the pods of an earlier process are known."""


class MachineOfNode(msgspec.Struct, frozen=True):
    """What differs between the machine of the server and a machine that joined it."""

    name: str = ""
    """Of the node; empty: that of the machine."""
    fake_gpus: str = ""
    """A simulated machine, whose GPUs the node has."""
    client_ca: str = ""
    """PEM: the authority of the server's client certificate, on a machine that joined. The node announces no address
    of its kubelet then, because the server reaches it by the machine's own connections."""
    namespace_labels: Callable[[str], Mapping[str, str]] | None = None
    """The labels of a namespace, by name, where the node may not read all namespaces."""


_SERVER = MachineOfNode()


async def start_this_machine(
    tasks: ProcessTasks, client: Callable[[str], Api], folder: Path, what: MachineOfNode = _SERVER
) -> StartedMachine:
    """`client` makes the client of a node's kubelet; `folder` has the state of its pods."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)  # noqa: ASYNC240
    machine = this_machine(folder, name=what.name)
    runtime = ProcessRuntime(folder / "pods")
    driver = _driver(what.fake_gpus)
    gpus, labels = NodeGpus(driver), _labels(driver)
    view = ThisMachineView(machine.name, runtime, Usage(machine.cores * 1000, machine.memory_bytes))
    port, url = await _endpoint(tasks, view, what.client_ca)
    annotations = {} if what.client_ca else {ENDPOINT: url}
    described = NodeDescription(machine, RUNTIME_CLASS, labels, annotations, gpus.amounts(), port)
    api = client(machine.name)
    context = tasks.context("kubelet", api)
    kubelets: list[Kubelet] = []
    parts = NodeParts(
        context.api,
        context.clock,
        runtime,
        gpus,
        PodStore(folder / "pods"),
        context.events,
        machine.name,
        machine.address,
        described.allocatable,
        lambda uid: kubelets[0].report(uid),  # noqa: PLW0108 - the kubelet does not exist yet
    )
    node = NodeOfThisMachine(context.api, context.clock, lambda: described)
    kubelet = Kubelet(context, parts, node, admission(what.namespace_labels or _labels_in(tasks.informers), runtime))
    kubelets.append(kubelet)
    view.kubelet = kubelet
    tasks.start("the kubelet of this machine", kubelet.run)
    problem = runtime.problem()
    _log.warning(problem or WARNING, *(() if problem else (_user(),)))
    return StartedMachine(machine.name, port, kubelet.has_taken_over)


def _labels_in(informers: Informers) -> Callable[[str], Mapping[str, str]]:
    namespaces = informers.of(NAMESPACES)

    def labels(name: str) -> Mapping[str, str]:
        item = namespaces.get("", name)
        return (item.obj()["metadata"].get("labels") or {}) if item is not None else {}

    return labels


def admission(labels_of: Callable[[str], Mapping[str, str]], runtime: ProcessRuntime) -> Admission:
    """Refuses pods that may not run as processes, or cannot."""
    user = ProcessUser(os.getuid(), os.getgid())

    def refusal(pod: Obj) -> Refused | None:
        spec = pod["spec"]
        if spec.get("runtimeClassName") != RUNTIME_CLASS:
            words = f"this node has no container runtime; pods with runtimeClassName: {RUNTIME_CLASS} run as processes"
            return Refused("RuntimeNotAvailable", words)
        problem = runtime.problem()
        if problem:
            return Refused("ProcessPodsNotPossible", problem)
        namespace = pod["metadata"]["namespace"]
        if labels_of(namespace).get(LABEL) != ALLOWED:
            words = f"process pods are not allowed in the namespace {namespace}; an administrator allows them with: "
            return Refused("ProcessPodsNotAllowed", f"{words}kubectl label namespace {namespace} {LABEL}={ALLOWED}")
        words = unsupported(pod, user)
        if words:
            return Refused("UnsupportedByProcessPods", words)
        for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
            name = runtime.unenforced(limits_of(container))
            if name:
                where = f"spec.containers[{container['name']}].resources.limits.{name}"
                words = f"{where} cannot be enforced: this user may not create cgroups with that controller"
                return Refused("UnsupportedByProcessPods", words)
        return None

    return refusal


async def _endpoint(tasks: ProcessTasks, view: ThisMachineView, client_ca: str) -> tuple[int, str]:
    settings = EndpointSettings(kubelet_port=0, metrics_port=0, client_ca=client_ca)
    if not client_ca:
        try:
            found = await tasks.api.get(CONFIG_MAPS, api_server_trust.NAMESPACE, api_server_trust.NAME)
            settings = api_server_trust.trusting(settings, found.obj())
        except NotFoundError:
            pass
    endpoint = Endpoint(view, settings, tasks.clock.seconds, tasks.node_labels)
    ports = await endpoint.start()
    tasks.at_end(endpoint.stop)
    return ports.kubelet_port, ports.kubelet_url


def _driver(fake: str = "") -> GpuDriver | None:
    if fake:
        return open_driver(fake)
    try:
        return open_driver()
    except UserError as error:
        _log.info("this machine has no GPU for pods: %s", error.what)
        return None


def _labels(driver: GpuDriver | None) -> Mapping[str, str]:
    """The labels of feature discovery."""
    if driver is None:
        return {}
    source = LabelSource(lambda: driver, SourceSettings(PluginConfig(), needs_driver=True), MachineFiles(_MACHINE_TYPE))
    try:
        return source.read().labels
    except (ShoalError, OSError) as error:
        _log.warning("the GPUs of this machine are not labelled: %s", error)
        return {}


async def provide_process_class(api: Api) -> None:
    """The RuntimeClass of process pods, which places them on nodes with that runtime."""
    toleration = {"key": RUNTIME_LABEL, "operator": "Equal", "value": RUNTIME_CLASS, "effect": "NoSchedule"}
    body = {
        "metadata": {"name": RUNTIME_CLASS},
        "handler": RUNTIME_CLASS,
        "scheduling": {"nodeSelector": {RUNTIME_LABEL: RUNTIME_CLASS}, "tolerations": [toleration]},
    }
    try:
        await api.create(_RUNTIME_CLASSES, body)
    except AlreadyExistsError:
        return


def _user() -> str:
    return os.environ.get("USER") or f"user {os.getuid()}"
