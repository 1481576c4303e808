"""Defines the views of Services and pods that endpoints are built from, and finds the Services of a pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from msgspec import field

from shoal.api.conditions import Condition, is_condition_true
from shoal.api.meta import ObjectMeta
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.wire import ApiStruct
from shoal.client.informer import Informer
from shoal.client.item import Item, Key, Seen
from shoal.client.owned_pods.owner_wakeups import gather_s
from shoal.client.owned_pods.ownership import head

HEADLESS = "service.kubernetes.io/headless"
_GATHER_S = 0.1


class ServicePort(ApiStruct, frozen=True):
    port: int
    name: str = ""
    protocol: str = "TCP"
    target_port: int | str = 0
    app_protocol: str = ""


class ServiceSpec(ApiStruct, frozen=True):
    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] = ()
    type: str = "ClusterIP"
    cluster_ip: str = field(default="", name="clusterIP")
    ip_families: tuple[str, ...] = ()
    publish_not_ready_addresses: bool = False


class Service(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: ServiceSpec

    @property
    def key(self) -> Key:
        return (self.metadata.namespace, self.metadata.name)

    @property
    def families(self) -> tuple[str, ...]:
        return self.spec.ip_families or ("IPv4",)

    @property
    def is_headless(self) -> bool:
        return self.spec.cluster_ip == "None"

    @property
    def has_selector(self) -> bool:
        """Whether its endpoints are pods."""
        return bool(self.spec.selector) and self.spec.type != "ExternalName"

    def selects(self, labels: dict[str, str]) -> bool:
        selector = self.spec.selector or {}
        return all(labels.get(key) == value for key, value in selector.items())


class ContainerPort(ApiStruct, frozen=True):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"


class _PortedContainer(ApiStruct, frozen=True):
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class _EndpointPodSpec(ApiStruct, frozen=True):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: tuple[_PortedContainer, ...] = ()
    init_containers: tuple[_PortedContainer, ...] = ()


class _PodIp(ApiStruct, frozen=True):
    ip: str = ""


class _EndpointPodStatus(ApiStruct, frozen=True):
    phase: str = ""
    pod_ips: tuple[_PodIp, ...] = field(default=(), name="podIPs")
    conditions: tuple[Condition, ...] = ()


class EndpointPod(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _EndpointPodSpec = field(default_factory=_EndpointPodSpec)
    status: _EndpointPodStatus = field(default_factory=_EndpointPodStatus)

    @property
    def is_finished(self) -> bool:
        return self.status.phase in TERMINAL_PHASES

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        return is_condition_true(self.status.conditions, "Ready")

    def addresses(self, family: str) -> list[str]:
        desired = 6 if family == "IPv6" else 4
        return [one.ip for one in self.status.pod_ips if one.ip and ip_address(one.ip).version == desired]

    def hostname(self, service: Service) -> str:
        """The host name of the pod in a headless Service."""
        return self.spec.hostname if self.spec.subdomain == service.metadata.name else ""

    def port_of(self, desired: ServicePort) -> int | None:
        """The port number of a Service port on this pod; None if the pod has no port of that name."""
        target = desired.target_port
        if isinstance(target, int):
            return target or desired.port
        sidecars = (one for one in self.spec.init_containers if one.restart_policy == "Always")
        for container in (*self.spec.containers, *sidecars):
            for port in container.ports:
                if (port.name, port.protocol) == (target, desired.protocol):
                    return port.container_port
        return None


_pod_view = Seen(EndpointPod)


class Services:
    """All Services by namespace."""

    def __init__(self, informer: Informer, pods: Informer) -> None:
        self._by_namespace: dict[str, dict[str, Service]] = {}
        self._pods = pods.index("namespace", lambda item: (item.namespace,))
        informer.on_change(self._changed)

    def get(self, key: Key) -> Service | None:
        return self._by_namespace.get(key[0], {}).get(key[1])

    def selecting(self, item: Item) -> Iterator[Key]:
        """The Services that select a pod."""
        services = self._by_namespace.get(item.namespace)
        if not services:
            return
        labels = head(item).labels
        for service in tuple(services.values()):
            if service.selects(labels):
                yield service.key

    def members(self, service: Service) -> list[EndpointPod]:
        """The selected pods that have not finished, by name."""
        items = self._pods[service.metadata.namespace]
        found = [_pod_view(item) for item in items if service.selects(head(item).labels)]
        return sorted((pod for pod in found if not pod.is_finished), key=lambda pod: pod.metadata.name)

    def gather_s(self, key: Key) -> float:
        """The delay that combines changes of several pods."""
        return max(_GATHER_S, gather_s(self._pods.count(key[0])))

    def _changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        of_namespace = self._by_namespace.setdefault(item.namespace, {})
        of_namespace.pop(item.name, None)
        if after is not None:
            service = after.read(Service)
            if service.has_selector:
                of_namespace[item.name] = service
        if not of_namespace:
            del self._by_namespace[item.namespace]


def keys_of(services: Services, items: Iterable[Item | None]) -> set[Key]:
    return {key for item in items if item is not None for key in services.selecting(item)}
