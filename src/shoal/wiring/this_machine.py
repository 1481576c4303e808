"""Makes this machine a node of the embedded cluster, which runs real pods: `shoal up --this-machine`."""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from shoal.agent.health.node_condition import PodUser
from shoal.agent.kubelet.cri.support import unsupported as unsupported_in_containers
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.kubelet import Admission, Kubelet
from shoal.agent.kubelet.launches import limits_of
from shoal.agent.kubelet.machine import this_machine
from shoal.agent.kubelet.mounts import no_mounts
from shoal.agent.kubelet.node import RUNTIME_LABEL, NodeDescription, NodeOfThisMachine
from shoal.agent.kubelet.pod_on_node import RUNTIME_CLASSES, NodeParts
from shoal.agent.kubelet.pod_store import PodStore
from shoal.agent.kubelet.process.launcher import ProcessLauncher
from shoal.agent.kubelet.process.runtime import ProcessRuntime
from shoal.agent.kubelet.process.support import ALLOWED, LABEL, RUNTIME_CLASS, ProcessUser, unsupported
from shoal.agent.kubelet.stopping import stop_all
from shoal.agent.kubelet.usage import UsageOfPods
from shoal.agent.plugin.node_label import read_config_label
from shoal.client.clock import WallClock
from shoal.client.context import Context
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.informers import Informers
from shoal.client.kind import CONFIG_MAPS, ENDPOINTS, NAMESPACES, NODES
from shoal.client.port import Api
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.devices.pod_refusal import Refused
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION as ENDPOINT
from shoal.embedded.kubelets.endpoint import api_server_trust
from shoal.embedded.kubelets.endpoint.endpoint import Endpoint, EndpointSettings, Ports
from shoal.embedded.kubelets.node_view import MeasuredNodes, Usage
from shoal.wiring.container_runtime import chosen_socket, open_containers, remove_unknown_pods
from shoal.wiring.gpu_configs import ConfigMaps, plugin_config_maps
from shoal.wiring.machine_gpus import GpuScene, MachineGpus, open_machine_gpus
from shoal.wiring.measured_nodes import AllNodes
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.this_machine_view import ThisMachineView

Obj = dict[str, Any]
_log = logging.getLogger("shoal.this-machine")
WARNING = (
    "this machine runs process pods: in namespaces with the label "
    f"{LABEL}={ALLOWED}, every user who may create pods runs programs as %s on this machine, without isolation"
)
CONTAINERS_WARNING = (
    "this machine runs containers: a user who may create pods with hostPath volumes or privileged containers can "
    "become root on it; the label pod-security.kubernetes.io/enforce=baseline of a namespace prevents both"
)


class StartedMachine(NamedTuple):
    node: str
    ports: Ports
    """Of the kubelet, on loopback."""
    ca: str
    """The authority of the kubelet's certificate."""
    view: ThisMachineView
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
    runtime_endpoint: str = ""
    """The user's choice of the container runtime's socket."""
    gpu_config: Path | None = None
    """The configuration of the device plugin: a file, or a folder with one for each kind of node."""
    others: MeasuredNodes | None = None
    """Further nodes whose usage is served with that of this one."""


_SERVER = MachineOfNode()


async def start_this_machine(
    tasks: ProcessTasks, client: Callable[[str], Api], folder: Path, what: MachineOfNode = _SERVER
) -> StartedMachine:
    """`client` makes the client of a node's kubelet; `folder` has the state of its pods."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)  # noqa: ASYNC240
    machine = this_machine(folder, name=what.name)
    pods = folder / "pods"
    runtime = ProcessRuntime(pods)
    found = await open_machine_gpus(what.fake_gpus)
    tasks.at_end(found.end)
    api = client(machine.name)
    maps = None if what.namespace_labels is not None else _plugin_configs(tasks.informers)
    mps_root = str(folder / "mps")
    found.configure(what.gpu_config, maps, mps_root, await read_config_label(api, machine.name))
    await asyncio.to_thread(found.read_metadata)
    gpus = found.node
    store = PodStore(pods)
    socket = chosen_socket(what.runtime_endpoint, folder / "runtime-endpoint", _stored_in_containers(store))
    containers = await open_containers(tasks, socket, pods, found.driver, gpus)
    view = ThisMachineView(machine.name, Usage(machine.cores * 1000, machine.memory_bytes))
    ports, ca = await _endpoint(tasks, view, what)
    annotations = {} if what.client_ca else {ENDPOINT: ports.kubelet_url}
    described = NodeDescription(
        machine,
        RUNTIME_CLASS,
        containers.version,
        kubelet_port=ports.kubelet_port,
    )
    processes = ProcessLauncher(runtime, gpus)
    context = tasks.context("kubelet", api)
    kubelets: list[Kubelet] = []
    parts = NodeParts(
        context.api,
        context.clock,
        lambda pod: processes if is_process_pod(pod) else containers.launcher,
        gpus,
        store,
        context.events,
        machine.name,
        machine.address,
        lambda: describe().allocatable(),
        lambda uid: kubelets[0].report(uid),  # noqa: PLW0108 - the kubelet does not exist yet
        await _server_variables(tasks.api),
    )

    def describe() -> NodeDescription:
        return msgspec.structs.replace(
            described,
            containers_problem=containers.problem(),
            labels=found.metadata.labels,
            annotations={**found.metadata.annotations, **annotations},
            resources=gpus.capacity(),
            healthy=gpus.allocatable(),
        )

    node = NodeOfThisMachine(context.api, context.clock, describe)
    containers.follow(node.wake)
    labels_of = what.namespace_labels or _labels_in(tasks.informers)
    kubelet = Kubelet(context, parts, node, admission(labels_of, runtime, containers.refusal))
    kubelets.append(kubelet)
    view.kubelet = kubelet
    view.measured = UsageOfPods(context.clock, kubelet.all)
    tasks.start("the usage of pods", view.measured.run)
    tasks.start("the kubelet of this machine", kubelet.run)
    tasks.start("the GPUs", partial(_run_gpus, found, kubelet, context, node))
    tasks.start("removal of unknown pods", partial(remove_unknown_pods, containers, kubelet, tasks.informers))
    if containers.images is not None:
        report = partial(_tell_of_node, context, node)
        tasks.start("garbage collection of images", partial(containers.images.run, report))
    problem = runtime.problem()
    _log.warning(problem or WARNING, *(() if problem else (_user(),)))
    if containers.refusal:
        _log.info("this machine runs no containers: %s", containers.refusal)
    else:
        _log.warning(CONTAINERS_WARNING)
    return StartedMachine(machine.name, ports, ca, view, kubelet.has_taken_over)


async def _run_gpus(gpus: MachineGpus, kubelet: Kubelet, context: Context, node: NodeOfThisMachine) -> None:
    def named(uid: str) -> PodUser | None:
        pod = kubelet.by_uid(uid)
        return None if pod is None else PodUser(pod.run.namespace, pod.run.name)

    def labels() -> Mapping[str, str]:
        item = context.informers.of(NODES).get("", node.name)
        return (item.obj()["metadata"].get("labels") or {}) if item is not None else {}

    # The Node exists then.
    await kubelet.has_taken_over.wait()
    tell = partial(_tell_of_node, context, node)
    await gpus.run(GpuScene(context.api, context.clock, node.name, node.wake, named, labels, tell))


def _plugin_configs(informers: Informers) -> ConfigMaps:
    maps = informers.of(CONFIG_MAPS)
    return lambda: plugin_config_maps({f"{item.namespace}/{item.name}": item.obj() for item in maps})


def _tell_of_node(context: Context, node: NodeOfThisMachine, reason: str, message: str) -> None:
    about = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": node.name, "uid": node.name}}
    context.events.record(about, reason, message, type_="Warning", host=node.name)


def _labels_in(informers: Informers) -> Callable[[str], Mapping[str, str]]:
    namespaces = informers.of(NAMESPACES)

    def labels(name: str) -> Mapping[str, str]:
        item = namespaces.get("", name)
        return (item.obj()["metadata"].get("labels") or {}) if item is not None else {}

    return labels


def is_process_pod(pod: Obj) -> bool:
    return bool(pod["spec"].get("runtimeClassName") == RUNTIME_CLASS)


def admission(labels_of: Callable[[str], Mapping[str, str]], runtime: ProcessRuntime, no_containers: str) -> Admission:
    """Refuses pods that may not run as processes, and pods that their runtime cannot run. `no_containers`: why
    containers cannot run; empty if they can."""
    user = ProcessUser(os.getuid(), os.getgid())

    def refusal(pod: Obj) -> Refused | None:
        spec = pod["spec"]
        if not is_process_pod(pod):
            if no_containers:
                words = f"pods with runtimeClassName: {RUNTIME_CLASS} run as processes"
                return Refused("RuntimeNotAvailable", f"this node runs no containers: {no_containers}; {words}")
            unfit = unsupported_in_containers(pod, no_mounts())
            return Refused("UnsupportedByContainers", unfit) if unfit else None
        problem = runtime.problem()
        if problem:
            return Refused("ProcessPodsNotPossible", problem)
        namespace = pod["metadata"]["namespace"]
        if labels_of(namespace).get(LABEL) != ALLOWED:
            words = f"process pods are not allowed in the namespace {namespace}; an administrator allows them with: "
            return Refused("ProcessPodsNotAllowed", f"{words}kubectl label namespace {namespace} {LABEL}={ALLOWED}")
        words = unsupported(pod, user, no_mounts())
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


async def stop_pods_of_this_machine(folder: Path, access: Access) -> None:
    """Stop all pods of a machine that is no node any more. `access`: of the server, which is not called."""
    api = KubeApi(access, random.Random())
    tasks = ProcessTasks(api, api, WallClock())
    pods = folder / "pods"
    store, processes = PodStore(pods), ProcessRuntime(pods)
    try:
        if _stored_in_containers(store):
            socket = chosen_socket("", folder / "runtime-endpoint", _stored_in_containers(store))
            containers = await open_containers(tasks, socket, pods, lambda: None, NodeGpus(None))
            boxed = containers.launcher.runtime
            await stop_all(lambda pod: processes if is_process_pod(pod) else boxed, store)
        else:
            await stop_all(lambda _: processes, store)
    finally:
        await tasks.end()
        await api.close()


def _stored_in_containers(store: PodStore) -> str:
    """A pod of an earlier process that runs in containers; empty if there is none."""
    runs = (one.run for one in store.all() if not is_process_pod(one.pod))
    found = next((run for run in runs if run.sandboxes and not run.is_over), None)
    return "" if found is None else f"pod {found.namespace}/{found.name}"


async def _server_variables(api: Api) -> dict[str, str]:
    """As Kubernetes names them, with the server's real address: nothing routes the addresses of Services here."""
    try:
        subset = (await api.get(ENDPOINTS, "default", "kubernetes")).obj()["subsets"][0]
    except (NotFoundError, LookupError):
        return {}
    host, port = subset["addresses"][0]["ip"], str(subset["ports"][0]["port"])
    names = ("KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS")
    return {"KUBERNETES_SERVICE_HOST": host, **dict.fromkeys(names, port)}


async def _endpoint(tasks: ProcessTasks, view: ThisMachineView, what: MachineOfNode) -> tuple[Ports, str]:
    """The open ports, and the authority of their certificate."""
    measured = AllNodes(view, what.others)
    settings = EndpointSettings(kubelet_port=0, metrics_port=0, client_ca=what.client_ca, measured=measured)
    if not what.client_ca:
        try:
            found = await tasks.api.get(CONFIG_MAPS, api_server_trust.NAMESPACE, api_server_trust.NAME)
            settings = api_server_trust.trusting(settings, found.obj())
        except NotFoundError:
            pass
    endpoint = Endpoint(view, settings, tasks.clock.seconds, tasks.node_labels)
    ports = await endpoint.start()
    tasks.at_end(endpoint.stop)
    return ports, endpoint.ca


async def provide_process_class(api: Api) -> None:
    """The RuntimeClass of process pods, which places them on nodes with that runtime."""
    toleration = {"key": RUNTIME_LABEL, "operator": "Equal", "value": RUNTIME_CLASS, "effect": "NoSchedule"}
    body = {
        "metadata": {"name": RUNTIME_CLASS},
        "handler": RUNTIME_CLASS,
        "scheduling": {"nodeSelector": {RUNTIME_LABEL: RUNTIME_CLASS}, "tolerations": [toleration]},
    }
    try:
        await api.create(RUNTIME_CLASSES, body)
    except AlreadyExistsError:
        return


def _user() -> str:
    return os.environ.get("USER") or f"user {os.getuid()}"
