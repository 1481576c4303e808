"""The rows of `shoal status`: components with their versions, nodes with their stages, and the first failing layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from shoal.install.differences import shown
from shoal.install.inventory import ReleaseRecord
from shoal.install.preflight.node_checks import is_gpu_node
from shoal.install.readiness import waits_for
from shoal.install.values.known import flat

Obj = dict[str, Any]
STAGES_ANNOTATION = "shoal.dev/gpu-stages"
"""Of a Node: what the operator writes about its components, as JSON."""
_DEPLOYMENTS = (
    ("scheduler", "shoal"),
    ("observer", "shoal-observer"),
    ("history", "shoal-history"),
    ("operator", "shoal-operator"),
    ("operator", "gpu-operator"),
)
_DAEMON_SETS = (
    ("discovery", "nvidia-node-feature-discovery"),
    ("driver", "nvidia-driver-daemonset"),
    ("toolkit", "nvidia-container-toolkit-daemonset"),
    ("device plugin", "nvidia-device-plugin-daemonset"),
    ("MPS", "nvidia-device-plugin-mps-control-daemon"),
    ("feature discovery", "gpu-feature-discovery"),
    ("DCGM", "nvidia-dcgm"),
    ("exporter", "nvidia-dcgm-exporter"),
    ("MIG manager", "nvidia-mig-manager"),
    ("validator", "nvidia-operator-validator"),
    ("node status exporter", "nvidia-node-status-exporter"),
)
_GPU = "nvidia.com/"
_MOST_CHANGES = 5
_DRIVER_VERSION = "nvidia.com/cuda.driver-version.full"


class ComponentRow(msgspec.Struct, frozen=True):
    component: str
    name: str
    state: str
    """ready, or what it waits for."""
    ready: str
    """2/2."""
    version: str


class NodeRow(msgspec.Struct, frozen=True):
    node: str
    state: str
    """ready, waiting, starting or failed."""
    layer: str
    """The first layer that fails or is not ready; empty if all are ready."""
    message: str
    gpus: str
    """Allocatable resources."""
    driver: str
    stages: Mapping[str, str] = {}


class AdoptionRow(msgspec.Struct, frozen=True):
    """A project whose decisions the release has taken over."""

    project: str
    state: str


class InstallationStatus(msgspec.Struct, frozen=True):
    release: str
    namespace: str
    state: str
    revision: int
    version: str
    components: tuple[ComponentRow, ...] = ()
    nodes: tuple[NodeRow, ...] = ()
    policy: str = ""
    """The state of the ClusterPolicy."""
    problem: str = ""
    """The first thing to look at; empty if all is well."""
    failed_upgrade: str = ""
    """Of a revision that was not ready in time: its values that differ from the present ones, and the reason."""
    adoptions: tuple[AdoptionRow, ...] = ()


def failed_upgrade(record: ReleaseRecord) -> str:
    failed = record.failed
    if failed is None:
        return ""
    before, after = dict(flat(record.current.values)), dict(flat(failed.values))
    changed = [f"{path}={shown(value)}" for path, value in after.items() if before.get(path) != value]
    changed += [f"{path}=null" for path in before if path not in after]
    version = [f"version {failed.version}"] if failed.version != record.current.version else []
    what = ", ".join([*version, *changed[:_MOST_CHANGES]]) or "the same values"
    more = f" and {len(changed) - _MOST_CHANGES} others" if len(changed) > _MOST_CHANGES else ""
    return f"{what}{more}: {failed.reason}"


def component_rows(deployments: Sequence[Obj], daemon_sets: Sequence[Obj]) -> Iterator[ComponentRow]:
    for component, name in _DEPLOYMENTS:
        for obj in deployments:
            if obj["metadata"]["name"] == name:
                status = obj.get("status") or {}
                yield _row(component, obj, status.get("readyReplicas", 0), obj["spec"].get("replicas", 1))
    for component, app in _DAEMON_SETS:
        for obj in daemon_sets:
            if app in (obj["metadata"]["name"], _app(obj)):
                status = obj.get("status") or {}
                yield _row(component, obj, status.get("numberReady", 0), status.get("desiredNumberScheduled", 0))


def _app(obj: Obj) -> str:
    return str((obj["metadata"].get("labels") or {}).get("app", ""))


def _row(component: str, obj: Obj, ready: int, wanted: int) -> ComponentRow:
    containers = obj["spec"]["template"]["spec"]["containers"]
    image = str(containers[0].get("image", "")) if containers else ""
    return ComponentRow(
        component, obj["metadata"]["name"], waits_for(obj) or "ready", f"{ready}/{wanted}", _version(image)
    )


def _version(image: str) -> str:
    """The tag, or the beginning of the digest."""
    name, _, digest = image.partition("@")
    if digest:
        return digest[:19]
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return tag if colon else "latest"


def node_rows(nodes: Iterable[Obj]) -> Iterator[NodeRow]:
    """Of nodes with GPUs."""
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        amounts = {name: str(amount) for name, amount in allocatable.items() if name.startswith(_GPU)}
        has_gpus = any(amount != "0" for amount in amounts.values())
        if not has_gpus and not is_gpu_node(labels):
            continue
        told = _stages((node["metadata"].get("annotations") or {}).get(STAGES_ANNOTATION, ""))
        state, layer, message = told.state, told.layer, told.message
        if not told.stages:
            state, layer = ("ready", "") if has_gpus else ("waiting", "device plugin")
            message = "" if has_gpus else "no GPU is allocatable, and the operator has not reported"
        shown = ", ".join(f"{name.removeprefix(_GPU)}={amount}" for name, amount in sorted(amounts.items()))
        yield NodeRow(
            node["metadata"]["name"], state, layer, message, shown, labels.get(_DRIVER_VERSION, ""), told.stages
        )


class _Told(msgspec.Struct, frozen=True):
    layer: str = ""
    state: str = "ready"
    message: str = ""
    stages: dict[str, str] = {}


def _stages(text: str) -> _Told:
    try:
        return msgspec.json.decode(text, type=_Told) if text else _Told()
    except msgspec.MsgspecError:
        return _Told()


def first_problem(state: str, components: Iterable[ComponentRow], nodes: Iterable[NodeRow]) -> str:
    """A failed node before one that waits, and both before a component; an unfinished release before all."""
    if state not in ("deployed", ""):
        return f"release: {state}; run the command again"
    rows = list(nodes)
    for wanted in ("failed", "waiting", "starting"):
        for row in rows:
            if row.state == wanted:
                return f"{row.layer} on node {row.node}: {row.message or row.state}"
    return next((f"{row.component} {row.name}: {row.state}" for row in components if row.state != "ready"), "")
