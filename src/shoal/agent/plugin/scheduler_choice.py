"""Gives the kubelet the devices that the scheduler chose for the pods of this node.

Implements `DeviceChoice` of the resource servers. Its methods can be called from any thread. A kubelet and this process
watch the same pods, and the kubelet can be the first that sees one; a request without a waiting pod is therefore held
back for a moment, until the watch has brought the pod.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.waiting_requests import ActualDevices, Held, Obj, PodName, WaitingRequests

_WAIT_S = 0.5


class SchedulerChoice:
    def __init__(self, wait_s: float = _WAIT_S) -> None:
        """`wait_s`: how long a request without a waiting pod is held back."""
        self._wait_s = wait_s
        self._requests = WaitingRequests()
        self._changed = threading.Condition()
        self.known = threading.Event()
        """Set as soon as the pods of the node were listed once."""
        self._listener: Callable[[], object] = lambda: None

    def on_allocation(self, listener: Callable[[], object]) -> None:
        """Called after each allocation, in the thread of the kubelet's request; in place of an earlier one."""
        self._listener = listener

    # For the resource servers.

    def wanted(self, resource: str, count: int, available: Sequence[PhysicalDevice]) -> Sequence[PhysicalDevice]:
        with self._changed:
            self._changed.wait_for(lambda: self._requests.is_awaited(resource, count), self._wait_s)
            return self._requests.chosen(resource, count, available)

    def kept_for_others(self, resource: str, count: int, available: Sequence[PhysicalDevice]) -> frozenset[str]:
        """The devices that a pod without a choice should not get, because they were chosen for other waiting pods."""
        with self._changed:
            return self._requests.chosen_for_others(resource, count, available)

    def allocated(self, resource: str, ids: Sequence[str]) -> None:
        with self._changed:
            self._requests.record(resource, ids)
        self._listener()

    # For those who follow the pods and ask the kubelet.

    def set_pods(self, pods: Iterable[Obj]) -> None:
        """All pods that are bound to the node."""
        with self._changed:
            self._requests.set_pods(pods)
            self._changed.notify_all()
        self.known.set()

    def verify(self, holders: Mapping[PodName, Held]) -> tuple[ActualDevices, ...]:
        with self._changed:
            return self._requests.verify(holders)

    def is_certain(self, holders: Mapping[PodName, Held]) -> bool:
        with self._changed:
            return self._requests.is_certain(holders)
