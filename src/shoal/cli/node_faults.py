"""Writes faults of nodes as the annotations that simulated kubelets read."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from shoal.client.item import Obj
from shoal.client.kind import NODES
from shoal.client.port import Api, Patch
from shoal.client.refusals import NotFoundError, StaleError
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION as ENDPOINT
from shoal.embedded.kubelets.faults import COMPONENT_FAULTS, FAULT, GPU_FAULTS, GPU_SOFTWARE
from shoal.embedded.kubelets.gpu_components.table import NAMES
from shoal.units.errors import UserError, excerpt

_GPU_COUNT, _GPUS = "nvidia.com/gpu.count", "nvidia.com/gpu"
_TRIES = 10


async def node_of(api: Api, name: str) -> Obj:
    """The node. Raises UserError with the most similar name for an unknown one."""
    try:
        return (await api.get(NODES, "", name)).obj()
    except NotFoundError:
        names = [item.name for item in (await api.list(NODES)).items]
        near = nearest_nodes(name, names)
        fix = f"the nearest: {', '.join(near)}" if near else "the cluster has no nodes"
        raise UserError(f"node {excerpt(name)} not found", fix=fix) from None


def nearest_nodes(name: str, names: Sequence[str]) -> list[str]:
    """Those that begin with the text, else those that are like it, else the first ones."""
    begun = [each for each in sorted(names) if each.startswith(name)]
    return (begun or get_close_matches(name, names, 3, 0.5) or sorted(names))[:3]


async def check_simulated(api: Api, name: str, fix: str = "nothing was changed") -> None:
    """Raises UserError for a node of real hardware: its work would be lost, or it would ignore the fault."""
    if ENDPOINT not in _annotations_of(await node_of(api, name)):
        what = f"node {excerpt(name)} is not simulated: `shoal up` and `shoal cluster nodes` start simulated nodes"
        raise UserError(what, fix=fix)


async def break_node(api: Api, name: str, kind: str) -> None:
    """A fault of its own each time: who has dealt with one knows a second by its id."""
    await check_simulated(api, name)
    fault = msgspec.json.encode({"kind": kind, "id": uuid.uuid4().hex[:12]}).decode()
    await api.patch(NODES, "", name, Patch("merge", _annotations({FAULT: fault})))


async def heal_node(api: Api, name: str) -> bool:
    """Returns whether there was a fault to remove."""
    present = _annotations_of(await node_of(api, name))
    found: dict[str, str | None] = {key: None for key in (FAULT, GPU_FAULTS, COMPONENT_FAULTS) if key in present}
    if found:
        await api.patch(NODES, "", name, Patch("merge", _annotations(found)))
    return bool(found)


async def break_gpu(api: Api, name: str, gpu: int, xid: int) -> None:
    await check_simulated(api, name)
    await _with_gpu_faults(api, name, gpu, xid)


async def break_component(api: Api, name: str, component: str, kind: str) -> None:
    """Raises UserError for an unknown component, and for a node on which component pods have no effect."""
    if component not in NAMES:
        raise UserError(f"there is no component {excerpt(component)}", fix=f"there are {', '.join(NAMES)}")
    await check_simulated(api, name)

    def change(node: Obj) -> Obj:
        written = _annotations_of(node)
        if GPU_SOFTWARE not in written:
            what = f"node {excerpt(name)} has its GPU software from the start, so no component of it can fail"
            raise UserError(what, fix="start the nodes with --gpu-software pods")
        try:
            faults = msgspec.json.decode(written.get(COMPONENT_FAULTS, "{}"), type=dict[str, str])
        except msgspec.MsgspecError:
            faults = {}
        text = msgspec.json.encode(dict(sorted({**faults, component: kind}.items()))).decode()
        return {COMPONENT_FAULTS: text}

    await _changed(api, name, change)


async def heal_gpu(api: Api, name: str, gpu: int) -> bool:
    """Whether it was broken."""
    return await _with_gpu_faults(api, name, gpu, None)


async def _with_gpu_faults(api: Api, name: str, gpu: int, xid: int | None) -> bool:
    """Whether the GPU had a fault before."""
    had = False

    def change(node: Obj) -> Obj | None:
        nonlocal had
        _check_gpu(node, name, gpu)
        faults = _gpu_faults(node)
        had = faults.pop(str(gpu), None) is not None
        if xid is None and not had:
            return None
        if xid is not None:
            faults[str(gpu)] = xid
        ordered = dict(sorted(faults.items(), key=lambda fault: int(fault[0])))
        return {GPU_FAULTS: msgspec.json.encode(ordered).decode() if faults else None}

    await _changed(api, name, change)
    return had


async def _changed(api: Api, name: str, change: Callable[[Obj], Obj | None]) -> None:
    """Write the annotations that `change` computes from the node; None: nothing. Others may write to it meanwhile."""
    for _ in range(_TRIES):
        node = await node_of(api, name)
        wanted = change(node)
        if wanted is None:
            return
        body = _annotations(wanted)
        body["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"]
        try:
            await api.patch(NODES, "", name, Patch("merge", body))
        except StaleError as error:
            refused = error
        else:
            return
    raise refused


def _check_gpu(node: Obj, name: str, gpu: int) -> None:
    labels = node["metadata"].get("labels") or {}
    capacity = (node.get("status") or {}).get("capacity") or {}
    said = str(labels.get(_GPU_COUNT) or capacity.get(_GPUS) or 0)
    count = int(said) if said.isdecimal() else 0
    if gpu >= count:
        has = f"its GPUs are 0 to {count - 1}" if count > 1 else "its only GPU is 0" if count else "it has no GPUs"
        raise UserError(f"node {name} has no GPU {gpu}", fix=has)


def _gpu_faults(node: Obj) -> dict[str, int]:
    """An annotation that cannot be read is overwritten."""
    try:
        faults = msgspec.json.decode(_annotations_of(node).get(GPU_FAULTS, "{}"), type=dict[str, int])
    except msgspec.MsgspecError:
        return {}
    return {index: xid for index, xid in faults.items() if index.isdecimal()}


def _annotations_of(node: Obj) -> dict[str, str]:
    return node["metadata"].get("annotations") or {}


def _annotations(wanted: dict[str, Any]) -> Obj:
    return {"metadata": {"annotations": wanted}}
