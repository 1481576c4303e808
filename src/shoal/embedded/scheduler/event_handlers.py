"""Passes changes of nodes, pods, volumes and devices to the scheduler cache and the queue.

Guarantees: an assumed pod counts on its node until the API server reports another state; a change that cannot help any
pod activates none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import structs

from shoal.api.node import Node
from shoal.api.partial import LabeledMeta, MetadataOf
from shoal.api.wire import dec_hook
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import (
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from shoal.client.volumes.needs import VolumeNeeds
from shoal.client.volumes.values import Known, StorageClass, Volume, VolumeClaim
from shoal.embedded.scheduler.device_fit import DeviceFit
from shoal.embedded.scheduler.pod_info import PodInfo, PodRequest, read_head, read_pod
from shoal.embedded.scheduler.queue import PodQueue
from shoal.embedded.scheduler.scheduler_cache import SchedulerCache
from shoal.embedded.scheduler.volume_fit import VolumeFit

_log = logging.getLogger("shoal.controllers")
_nodes = msgspec.json.Decoder(Node, dec_hook=dec_hook)
_MAX_SHARED = 4096
KINDS = (
    PODS,
    NODES,
    NAMESPACES,
    VOLUME_CLAIMS,
    VOLUMES,
    STORAGE_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    DEVICE_CLASSES,
)


class EventHandlers:
    def __init__(self, context: Context, names: frozenset[str], wake: Callable[[], None]) -> None:
        self._clock = context.clock
        self._names = names
        self._wake = wake
        self._namespaces: dict[str, dict[str, str]] = {}
        self._requests: dict[PodRequest, PodRequest] = {}
        self._labels: dict[frozenset[tuple[str, str]], dict[str, str]] = {}
        self.queue = PodQueue()
        of = context.informers.of
        needs = VolumeNeeds(
            Known(of(VOLUME_CLAIMS), VolumeClaim), Known(of(VOLUMES), Volume), Known(of(STORAGE_CLASSES), StorageClass)
        )
        self.volumes = VolumeFit(needs)
        self.state = SchedulerCache(self._namespaces, self.volumes)
        columns = self.state.columns
        self.devices = DeviceFit(columns, of(RESOURCE_CLAIMS), of(RESOURCE_SLICES), of(DEVICE_CLASSES))
        self.state.devices = self.devices
        of(NAMESPACES).on_change(self._namespace_changed)
        of(NODES).on_change(self._node_changed)
        of(PODS).on_change(self._pod_changed)
        for kind in (VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES):
            of(kind).on_change(self._activating(lambda pod: bool(pod.request.volume_claims)))
        for kind in (RESOURCE_CLAIMS, RESOURCE_SLICES, DEVICE_CLASSES):
            of(kind).on_change(self._activating(lambda pod: bool(pod.request.device_claims)))

    def activate(self, may_help: Callable[[PodInfo], bool] | None = None) -> None:
        if len(self.queue):
            self.queue.activate(self._clock.seconds(), may_help)
            self._wake()

    def _activating(self, may_help: Callable[[PodInfo], bool]) -> Callable[[Any, Any], None]:
        return lambda *_: self.activate(may_help)

    def _namespace_changed(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            name, labels = after.name, after.read(MetadataOf[LabeledMeta]).metadata.labels
            if self._namespaces.get(name) == labels:
                return
            self._namespaces[name] = labels
        elif before is not None:
            name = before.name
            self._namespaces.pop(name, None)
        else:
            return
        self.state.namespace_changed(name)
        self.activate(lambda pod: pod.namespace == name or not pod.request.rules.is_empty())

    def _node_changed(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            if self.state.put_node(_nodes.decode(after.data)):
                self.activate()
        elif before is not None:
            self.state.drop_node(before.name)
            self.activate()

    # -- pods -------------------------------------------------------------------------------------------------------

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._pod_gone(before.uid)
            return
        known = self.state.placed.get(after.uid)
        if known is None:
            self._pod_seen(after)
            return
        head = read_head(after)
        if head.node or head.is_ended or head.is_terminating:
            self.queue.drop(after.uid)
            if self.state.update(after.uid, head):
                self.activate()

    def _pod_gone(self, uid: str) -> None:
        self.queue.drop(uid)
        was_promised = self.state.nominated.pop(uid, None) is not None
        if self.state.remove(uid) or was_promised:
            self.activate()

    def _pod_seen(self, item: Item) -> None:
        try:
            pod = read_pod(item)
        except msgspec.ValidationError as error:
            _log.warning("pod %s/%s cannot be read: %s", item.namespace, item.name, error)
            return
        pod = self._shared(pod)
        if pod.node:
            self.queue.drop(pod.uid)
            if not pod.is_ended:
                self.state.place(pod.node, pod)
                self.activate(lambda one: one.request.rules.may_wait_for_others())
            return
        is_ours = pod.scheduler in self._names
        if not is_ours or pod.is_gated or pod.request.missing_claim or pod.is_terminating or pod.is_ended:
            self._pod_gone(pod.uid)
            return
        if pod.nominated and pod.nominated in self.state.columns.row_of:
            self.state.nominated[pod.uid] = (pod.nominated, pod)
        else:
            self.state.nominated.pop(pod.uid, None)
        known = self.queue.get(pod.uid)
        if known is not None and (known.request, known.labels, known.priority) == (
            pod.request,
            pod.labels,
            pod.priority,
        ):
            self.queue.refresh(pod)
            return
        self.queue.put(pod)
        self._wake()

    def _shared(self, pod: PodInfo) -> PodInfo:
        """The same pod with shared values, because thousands of pods are stored."""
        if len(self._requests) > _MAX_SHARED or len(self._labels) > _MAX_SHARED:
            self._requests.clear()
            self._labels.clear()
        request = self._requests.setdefault(pod.request, pod.request)
        labels = self._labels.setdefault(frozenset(pod.labels.items()), pod.labels)
        return structs.replace(pod, request=request, labels=labels)
