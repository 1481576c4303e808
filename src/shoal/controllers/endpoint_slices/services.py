"""Services, and the pods behind them, as far as endpoints are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from msgspec import field

from shoal.api.wire import ApiStruct
from shoal.controllers.owned_pods.concern import gather_s
from shoal.controllers.owned_pods.ownership import head
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item, Key, Seen

HEADLESS = "service.kubernetes.io/headless"
_GATHER_S = 0.1
_ENDED = ("Succeeded", "Failed")


class Meta(ApiStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    deletion_timestamp: str | None = None


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
    metadata: Meta
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
    def has_members(self) -> bool:
        """Whether its endpoints are made of pods at all."""
        return bool(self.spec.selector) and self.spec.type != "ExternalName"

    def selects(self, labels: dict[str, str]) -> bool:
        selector = self.spec.selector or {}
        return all(labels.get(key) == value for key, value in selector.items())


class ContainerPort(ApiStruct, frozen=True):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"


class _Container(ApiStruct, frozen=True):
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class _PodSpec(ApiStruct, frozen=True):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()


class _Address(ApiStruct, frozen=True):
    ip: str = ""


class _Condition(ApiStruct, frozen=True):
    type: str
    status: str = ""


class _PodStatus(ApiStruct, frozen=True):
    phase: str = ""
    pod_ips: tuple[_Address, ...] = field(default=(), name="podIPs")
    conditions: tuple[_Condition, ...] = ()


class Pod(ApiStruct, frozen=True):
    metadata: Meta
    spec: _PodSpec = field(default_factory=_PodSpec)
    status: _PodStatus = field(default_factory=_PodStatus)

    @property
    def is_ended(self) -> bool:
        return self.status.phase in _ENDED

    @property
    def is_leaving(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        return any(one.type == "Ready" and one.status == "True" for one in self.status.conditions)

    def addresses(self, family: str) -> list[str]:
        wanted = 6 if family == "IPv6" else 4
        return [one.ip for one in self.status.pod_ips if one.ip and ip_address(one.ip).version == wanted]

    def hostname(self, service: Service) -> str:
        """The name that it has among the members of a headless Service."""
        return self.spec.hostname if self.spec.subdomain == service.metadata.name else ""

    def port_of(self, wanted: ServicePort) -> int | None:
        """The number of a Service's port on this pod; None where the pod has none of that name."""
        target = wanted.target_port
        if isinstance(target, int):
            return target or wanted.port
        sidecars = (one for one in self.spec.init_containers if one.restart_policy == "Always")
        for container in (*self.spec.containers, *sidecars):
            for port in container.ports:
                if (port.name, port.protocol) == (target, wanted.protocol):
                    return port.container_port
        return None


_seen = Seen(Pod)


class Services:
    """All Services by namespace, so that a pod finds those that select it."""

    def __init__(self, informer: Informer, pods: Informer) -> None:
        self._by_namespace: dict[str, dict[str, Service]] = {}
        self._pods = pods.index("namespace", lambda item: (item.namespace,))
        informer.on_change(self._changed)

    def get(self, key: Key) -> Service | None:
        return self._by_namespace.get(key[0], {}).get(key[1])

    def selecting(self, item: Item) -> Iterator[Key]:
        """The Services that a pod stands behind."""
        services = self._by_namespace.get(item.namespace)
        if not services:
            return
        labels = head(item).labels
        for service in tuple(services.values()):
            if service.selects(labels):
                yield service.key

    def members(self, service: Service) -> list[Pod]:
        """The pods that it selects and that have not ended, by name."""
        items = self._pods[service.metadata.namespace]
        found = [_seen(item) for item in items if service.selects(head(item).labels)]
        return sorted((pod for pod in found if not pod.is_ended), key=lambda pod: pod.metadata.name)

    def gather_s(self, key: Key) -> float:
        """Pods that change within this time are told of together."""
        return max(_GATHER_S, gather_s(self._pods.count(key[0])))

    def _changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        of_namespace = self._by_namespace.setdefault(item.namespace, {})
        of_namespace.pop(item.name, None)
        if after is not None:
            service = after.read(Service)
            if service.has_members:
                of_namespace[item.name] = service
        if not of_namespace:
            del self._by_namespace[item.namespace]


def keys_of(services: Services, items: Iterable[Item | None]) -> set[Key]:
    return {key for item in items if item is not None for key in services.selecting(item)}
