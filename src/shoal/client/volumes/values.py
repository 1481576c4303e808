"""Decodes the fields of claims, volumes and storage classes that binding reads, and caches the decoded values.

Both the binder and a scheduler read all volumes for one claim; decoding them each time would cost more than the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import field

from shoal.api.node_affinity import NodeSelector
from shoal.api.selectors import LabelSelector
from shoal.api.wire import ApiStruct, Quantities, dec_hook
from shoal.client.informer import Informer
from shoal.client.item import Item, Key
from shoal.units.quantity import ZERO, Quantity

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
WAITS = "WaitForFirstConsumer"
SINGLE_POD = "ReadWriteOncePod"


class VolumeObjectMeta(ApiStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None

    @property
    def is_terminating(self) -> bool:
        return self.deletion_timestamp is not None


class _Asked(ApiStruct, frozen=True):
    requests: Quantities = field(default_factory=dict)


class ClaimSpec(ApiStruct, frozen=True):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: _Asked = field(default_factory=_Asked)
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None


class ClaimStatus(ApiStruct, frozen=True):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: Quantities = field(default_factory=dict)


class VolumeClaim(ApiStruct, frozen=True):
    metadata: VolumeObjectMeta
    spec: ClaimSpec = field(default_factory=ClaimSpec)
    status: ClaimStatus = field(default_factory=ClaimStatus)

    @property
    def key(self) -> Key:
        return (self.metadata.namespace, self.metadata.name)

    @property
    def class_name(self) -> str:
        """Empty both if it requests no class and if the field is not set."""
        return self.metadata.annotations.get(CLASS_ANNOTATION, self.spec.storage_class_name or "")

    @property
    def is_unclassed(self) -> bool:
        return CLASS_ANNOTATION not in self.metadata.annotations and self.spec.storage_class_name is None

    @property
    def asked(self) -> Quantity:
        return self.spec.resources.requests.get("storage", ZERO)

    @property
    def is_bound(self) -> bool:
        return bool(self.spec.volume_name) and "pv.kubernetes.io/bind-completed" in self.metadata.annotations


class ClaimRef(ApiStruct, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Reachable(ApiStruct, frozen=True):
    required: NodeSelector | None = None


class VolumeSpec(ApiStruct, frozen=True):
    capacity: Quantities = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimRef | None = None
    persistent_volume_reclaim_policy: str = "Retain"
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    node_affinity: Reachable | None = None
    volume_attributes_class_name: str | None = None


class VolumeStatus(ApiStruct, frozen=True):
    phase: str = ""


class Volume(ApiStruct, frozen=True):
    metadata: VolumeObjectMeta
    spec: VolumeSpec = field(default_factory=VolumeSpec)
    status: VolumeStatus = field(default_factory=VolumeStatus)

    @property
    def key(self) -> Key:
        return ("", self.metadata.name)

    @property
    def class_name(self) -> str:
        return self.metadata.annotations.get(CLASS_ANNOTATION, self.spec.storage_class_name)

    @property
    def size(self) -> Quantity:
        return self.spec.capacity.get("storage", ZERO)

    def is_reached_from(self, node: str, labels: dict[str, str]) -> bool:
        affinity = self.spec.node_affinity
        return affinity is None or affinity.required is None or affinity.required.matches(node, labels)

    def is_for(self, claim: VolumeClaim) -> bool:
        """Whether the volume is bound to this claim, or was reserved for it before it had a uid."""
        ref = self.spec.claim_ref
        if ref is None or (ref.namespace, ref.name) != claim.key:
            return False
        return ref.uid in ("", claim.metadata.uid)


class _Expression(ApiStruct, frozen=True):
    key: str
    values: tuple[str, ...] = ()


class Topology(ApiStruct, frozen=True):
    match_label_expressions: tuple[_Expression, ...] = ()

    def holds(self, labels: dict[str, str]) -> bool:
        return all(labels.get(one.key) in one.values for one in self.match_label_expressions)


class StorageClass(ApiStruct, frozen=True):
    metadata: VolumeObjectMeta
    provisioner: str = ""
    reclaim_policy: str = "Delete"
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool = False
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[Topology, ...] = ()

    @property
    def key(self) -> Key:
        return ("", self.metadata.name)

    @property
    def is_default(self) -> bool:
        return self.metadata.annotations.get("storageclass.kubernetes.io/is-default-class") == "true"

    @property
    def waits(self) -> bool:
        return self.volume_binding_mode == WAITS

    def is_allowed_on(self, labels: dict[str, str]) -> bool:
        return not self.allowed_topologies or any(one.holds(labels) for one in self.allowed_topologies)


T = TypeVar("T", VolumeClaim, Volume, StorageClass)
V_co = TypeVar("V_co", VolumeClaim, Volume, StorageClass, covariant=True)


class Values(Protocol[V_co]):
    """The objects of one kind, from any source."""

    def get(self, key: Key, /) -> V_co | None: ...

    def __iter__(self) -> Iterator[V_co]: ...


class Written(Generic[T]):
    """The objects of manifests."""

    def __init__(self, values: Iterable[T]) -> None:
        self._values: dict[Key, T] = {value.key: value for value in values}

    def get(self, key: Key) -> T | None:
        return self._values.get(key)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._values.values()))


class Known(Generic[T]):
    """The decoded objects of one kind, synchronized with its cache."""

    def __init__(self, informer: Informer, what: type[T]) -> None:
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(what, dec_hook=dec_hook)
        self._values: dict[Key, T] = {}
        informer.on_change(self._changed)

    def get(self, key: Key) -> T | None:
        return self._values.get(key)

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._values.values()))

    def _changed(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self._values[after.key] = self._decoder.decode(after.data)
        elif before is not None:
            self._values.pop(before.key, None)
