"""Object metadata: name, labels, owners and creation time."""

from __future__ import annotations

from msgspec import field

from shoal.api.wire import ApiStruct, Timestamp

DEFAULT_NAMESPACE = "default"


class OwnerReference(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(ApiStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    deletion_grace_period_seconds: int | None = None

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name where there is no namespace: unique within a kind."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def controller(self) -> OwnerReference | None:
        """The one owner that manages this object, if any."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Namespace(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    def labels(self) -> dict[str, str]:
        """The API server adds the name as a label, and namespace selectors rely on it."""
        return {**self.metadata.labels, "kubernetes.io/metadata.name": self.metadata.name}
