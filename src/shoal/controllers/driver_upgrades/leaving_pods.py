"""Selects the pods that leave a node before its driver is replaced, as kubectl's drain does. The functions are pure.

Pods of DaemonSets and mirror pods stay. A pod without a controller, or with an emptyDir volume, leaves only if the
policy says so; otherwise nothing is evicted and the reason names the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import field

from shoal.api.partial import OwnedMeta, PodPhaseStatus
from shoal.api.selectors import Selector
from shoal.api.wire import ApiStruct
from shoal.client.item import Item
from shoal.operator.upgrades.policy import PodRemoval

_MIRROR = "kubernetes.io/config.mirror"
_MOST_NAMES = 3


class _LeavingVolume(ApiStruct, frozen=True):
    empty_dir: dict[str, Any] | None = None


class _LeavingSpec(ApiStruct, frozen=True):
    volumes: tuple[_LeavingVolume, ...] = ()


class _LeavingPod(ApiStruct, frozen=True):
    metadata: OwnedMeta
    spec: _LeavingSpec = _LeavingSpec()
    status: PodPhaseStatus = field(default_factory=PodPhaseStatus)


class LeavingPods(msgspec.Struct, frozen=True):
    pods: tuple[Item, ...] = ()
    problem: str = ""
    """Why no pod is evicted."""


def leaving_pods(
    items: Iterable[Item],
    removal: PodRemoval,
    selector: Selector = Selector.EVERYTHING,
    is_meant: Callable[[Item], bool] = lambda _: True,
) -> LeavingPods:
    """`items`: the pods of the node; `is_meant`: whether a pod is one of those that must leave."""
    going: list[Item] = []
    unmanaged: list[str] = []
    with_data: list[str] = []
    for item in items:
        pod = item.read(_LeavingPod)
        owner = pod.metadata.controller()
        if _MIRROR in pod.metadata.annotations or (owner is not None and owner.kind == "DaemonSet"):
            continue
        if not selector.matches(pod.metadata.labels) or not is_meant(item):
            continue
        going.append(item)
        if pod.status.is_finished():
            continue
        if owner is None and not removal.is_forced:
            unmanaged.append("/".join(item.key))
        elif not removal.deletes_empty_dirs and any(one.empty_dir is not None for one in pod.spec.volumes):
            with_data.append("/".join(item.key))
    if unmanaged:
        return LeavingPods(problem=f"{_listed(unmanaged)} without a controller would not be made again; set force")
    if with_data:
        return LeavingPods(problem=f"{_listed(with_data)} would lose the data of emptyDir volumes; set deleteEmptyDir")
    return LeavingPods(tuple(going))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{'pod' if len(names) == 1 else 'pods'} {', '.join(names[:_MOST_NAMES])}{more}"
