"""Matches requests for devices, which name no pod, with the pods of a node that wait for devices.

The kubelet admits the pods of its node one after the other. For each it asks the device plugin for one resource of one
container at a time, without the pod's name. Such a request is taken for that of the oldest pod that is bound to the
node, requests this number of the resource, and has no devices for it. What the kubelet says later about the devices of
pods (`verify`) takes precedence over these matches.

Guarantees: a request without a match has no effect; a pod that was matched wrongly waits again as soon as the kubelet
has named the true holder of its devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.chosen_devices import Choice
from shoal.devices.device_ids import ids_in
from shoal.devices.device_requests import asks_of
from shoal.devices.names import OWN_DEVICES

Obj = dict[str, Any]
Held = Mapping[str, Mapping[str, Sequence[str]]]
"""Container -> resource -> the ids of its devices."""


class PodName(msgspec.Struct, frozen=True):
    namespace: str
    name: str


class WaitingRequest(msgspec.Struct, frozen=True):
    """The request of one container of one pod for one resource."""

    uid: str
    pod: PodName
    container: str
    resource: str
    count: int


class ActualDevices(msgspec.Struct, frozen=True):
    """The devices that the kubelet has allocated to a pod, where its annotation and its status say something else."""

    uid: str
    pod: PodName
    devices: Held


class _WaitingPod(msgspec.Struct, frozen=True):
    obj: Obj
    requests: tuple[WaitingRequest, ...]
    is_chosen: bool
    """Whether its annotation chooses devices."""
    is_ending: bool


class WaitingRequests:
    def __init__(self) -> None:
        self._pods: list[_WaitingPod] = []
        """Those that can hold devices, the oldest first."""
        self._given: dict[WaitingRequest, frozenset[str]] = {}
        """The devices that a container has, or seems to have until the kubelet names its pods."""
        self._offered: WaitingRequest | None = None
        self._available: Sequence[PhysicalDevice] = ()

    def set_pods(self, pods: Iterable[Obj]) -> None:
        """All pods of the node. Those that have ended hold no devices."""
        found = (_waiting_pod(pod) for pod in sorted(pods, key=_age) if not _has_ended(pod))
        self._pods = [pod for pod in found if pod.requests]
        present = {one for pod in self._pods for one in pod.requests}
        self._given = {one: ids for one, ids in self._given.items() if one in present}

    def is_awaited(self, resource: str, count: int) -> bool:
        """Whether a pod waits for so many devices of the resource."""
        return next(self._waiting(resource, count), None) is not None

    def chosen(self, resource: str, count: int, available: Sequence[PhysicalDevice]) -> list[PhysicalDevice]:
        """The devices that the scheduler chose for the oldest pod that waits for so many; empty without a match, or if
        one of them is not available.
        """
        found = next(self._waiting(resource, count), None)
        self._offered, self._available = (None if found is None else found[0]), available
        return [] if found is None else _choice(*found, available)

    def chosen_for_others(self, resource: str, count: int, available: Sequence[PhysicalDevice]) -> frozenset[str]:
        """The ids of the devices that were chosen for pods which wait, apart from the oldest that waits for so many."""
        first = next(self._waiting(resource, count), None)
        others = (each for each in self._waiting(resource) if first is None or each[0] != first[0])
        return frozenset(device.id for request, pod in others for device in _choice(request, pod, available))

    def record(self, resource: str, ids: Sequence[str]) -> WaitingRequest | None:
        """The kubelet has asked for these devices. Returns the request that this was taken for."""
        waiting = list(self._waiting(resource, len(ids)))
        # The one that was offered first: most often it is the one.
        waiting.sort(key=lambda one: one[0] != self._offered)
        exact = (one for one, pod in waiting if {device.id for device in _choice(one, pod, self._available)} == {*ids})
        request = next(exact, None) or next((one for one, _ in waiting), None)
        self._offered, self._available = None, ()
        if request is not None:
            self._given[request] = frozenset(ids)
        return request

    def verify(self, holders: Mapping[PodName, Held]) -> tuple[ActualDevices, ...]:
        """The kubelet's own list. Returns the pods about which the cluster has to learn other devices than it knows."""
        certain: dict[WaitingRequest, frozenset[str]] = {}
        actual: list[ActualDevices] = []
        for pod in self._pods:
            name = pod.requests[0].pod
            held = holders.get(name, {})
            own = {one: tuple(held.get(one.container, {}).get(one.resource, ())) for one in pod.requests}
            certain |= {one: frozenset(ids) for one, ids in own.items() if ids}
            devices = _by_container(own)
            if devices and not _is_known(pod.obj, devices):
                actual.append(ActualDevices(pod.requests[0].uid, name, devices))
        taken = {(one.resource, each) for one, ids in certain.items() for each in ids}
        # A container that was only matched does not have what the kubelet gave to another one.
        kept = {one: ids for one, ids in self._given.items() if not any((one.resource, each) in taken for each in ids)}
        self._given = {**kept, **certain}
        return tuple(actual)

    def is_certain(self, holders: Mapping[PodName, Held]) -> bool:
        """Whether the kubelet has named the holders of all devices that it asked for."""
        return all(
            frozenset(holders.get(one.pod, {}).get(one.container, {}).get(one.resource, ())) == ids
            for one, ids in self._given.items()
        )

    def _waiting(self, resource: str, count: int | None = None) -> Iterator[tuple[WaitingRequest, _WaitingPod]]:
        for pod in self._pods:
            # The kubelet admits no pod that is being deleted.
            for request in () if pod.is_ending else pod.requests:
                is_asked = request.resource == resource and count in (None, request.count)
                if is_asked and request not in self._given:
                    yield request, pod


def annotation_of(held: Held) -> str:
    """The value of `shoal.dev/devices` for these devices."""
    plain = {
        container: {name: [*ids] for name, ids in sorted(resources.items())}
        for container, resources in sorted(held.items())
    }
    return msgspec.json.encode(plain).decode()


def _requests(pod: Obj) -> Iterator[WaitingRequest]:
    uid, name = pod["metadata"]["uid"], _name(pod)
    for ask in asks_of(pod):
        for resource, count in ask.amounts:
            yield WaitingRequest(uid, name, ask.container, resource, count)


def _waiting_pod(pod: Obj) -> _WaitingPod:
    metadata = pod["metadata"]
    is_chosen = bool((metadata.get("annotations") or {}).get(OWN_DEVICES))
    return _WaitingPod(pod, tuple(_requests(pod)), is_chosen, bool(metadata.get("deletionTimestamp")))


def _choice(request: WaitingRequest, pod: _WaitingPod, available: Sequence[PhysicalDevice]) -> list[PhysicalDevice]:
    """Numbers are assigned to the containers in order, so those of the containers before are passed over."""
    if not pod.is_chosen:
        return []
    choice = Choice(pod.obj)
    for before in pod.requests:
        if before is request:
            break
        choice.pass_over(before.container, before.resource, before.count)
    wanted = choice.wanted(request.container, request.resource, request.count, available)
    return wanted if isinstance(wanted, list) and len(wanted) == request.count else []


def _by_container(own: Mapping[WaitingRequest, tuple[str, ...]]) -> Held:
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for request, ids in own.items():
        if ids:
            found.setdefault(request.container, {})[request.resource] = ids
    return found


def _is_known(pod: Obj, held: Held) -> bool:
    """Whether the pod's status, which kubelets may write, or else its annotation names these devices."""
    actual = _plain(held).items()
    return actual <= _plain(_in_status(pod)).items() or actual <= _plain(_annotated(pod)).items()


def _annotated(pod: Obj) -> Held:
    return ids_in(str((pod["metadata"].get("annotations") or {}).get(OWN_DEVICES) or ""))


def _in_status(pod: Obj) -> Held:
    status = pod.get("status") or {}
    return {
        one["name"]: {
            entry.get("name", ""): [device.get("resourceID", "") for device in entry.get("resources") or ()]
            for entry in one.get("allocatedResourcesStatus") or ()
        }
        for part in ("initContainerStatuses", "containerStatuses")
        for one in status.get(part) or ()
        if one.get("allocatedResourcesStatus")
    }


def _plain(held: Held) -> dict[tuple[str, str], frozenset[str]]:
    return {(container, name): frozenset(ids) for container, of in held.items() for name, ids in of.items() if ids}


def _name(pod: Obj) -> PodName:
    return PodName(pod["metadata"].get("namespace", ""), pod["metadata"]["name"])


def _has_ended(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in TERMINAL_PHASES


def _age(pod: Obj) -> tuple[str, str, str]:
    """By the time of binding. The kubelet admits pods of one time in the order of their creation."""
    created = str(pod["metadata"].get("creationTimestamp") or "")
    conditions = (pod.get("status") or {}).get("conditions") or ()
    bound: Obj = next((one for one in conditions if one.get("type") == "PodScheduled"), {})
    return str(bound.get("lastTransitionTime") or created), created, pod["metadata"]["uid"]
