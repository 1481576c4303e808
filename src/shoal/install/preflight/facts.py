"""What the preflight knows about a cluster, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Level = Literal["error", "warning", "note"]


class Finding(msgspec.Struct, frozen=True):
    """`error`: the installation does not begin. `warning`: it may not do what is intended. `note`: what follows."""

    level: Level
    check: str
    what: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.fix}" if self.fix else self.what


class Right(msgspec.Struct, frozen=True, order=True):
    resource: str
    group: str
    verb: str
    namespace: str = ""


class FoundNode(msgspec.Struct, frozen=True):
    name: str
    runtime: str = ""
    """As the kubelet reports it: containerd://2.1.4."""
    os: str = ""
    """The name of the operating system with its version."""
    labels: Mapping[str, str] = {}
    gpus: int = 0
    """Allocatable."""


class DefinitionFacts(msgspec.Struct, frozen=True):
    name: str
    labels: Mapping[str, str] = {}
    served: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    is_terminating: bool = False


class HookFacts(msgspec.Struct, frozen=True):
    """A webhook that refuses requests while its Service does not answer."""

    configuration: str
    name: str
    kind: Literal["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
    resources: frozenset[str] = frozenset()
    service: str = ""
    """Namespace and name; empty with a URL."""
    has_endpoints: bool = True


class FoundWorkload(msgspec.Struct, frozen=True):
    """A Deployment or DaemonSet of the cluster."""

    kind: Literal["Deployment", "DaemonSet"]
    namespace: str
    name: str
    app: str = ""
    """The value of the label `app` or `app.kubernetes.io/name`."""
    managed_by: str = ""
    instance: str = ""
    ready: int = 0
    owner: str = ""
    """The kind of the object that owns it."""


class StorageClassFacts(msgspec.Struct, frozen=True):
    name: str
    is_default: bool = False


class ClaimFacts(msgspec.Struct, frozen=True):
    """The claim of the volume for the history, of an installation before."""

    storage_class: str = ""
    size: str = "0"
    """What is requested."""
    modes: tuple[str, ...] = ()


class PolicyFacts(msgspec.Struct, frozen=True):
    """A ClusterPolicy."""

    name: str
    labels: Mapping[str, str] = {}


class ReleaseFacts(msgspec.Struct, frozen=True):
    """A release of Shoal in the cluster."""

    name: str
    namespace: str
    state: str
    version: str = ""


class ClusterFacts(msgspec.Struct, frozen=True):
    version: str = ""
    user: str = ""
    denied: tuple[Right, ...] = ()
    nodes: tuple[FoundNode, ...] = ()
    namespace_labels: Mapping[str, str] | None = None
    """Of the namespace of the release; None if it does not exist."""
    is_namespace_terminating: bool = False
    definitions: tuple[DefinitionFacts, ...] = ()
    hooks: tuple[HookFacts, ...] = ()
    workloads: tuple[FoundWorkload, ...] = ()
    policies: tuple[PolicyFacts, ...] = ()
    releases: tuple[ReleaseFacts, ...] = ()
    priority_classes: frozenset[str] = frozenset()
    storage_classes: tuple[StorageClassFacts, ...] | None = ()
    """None: the user may not read them."""
    history_claim: ClaimFacts | None = None
    adopted: tuple[str, ...] = ()
    """Projects whose objects the release has taken over."""
    unread: tuple[str, ...] = ()
    """Resources that the user may not read, so that what depends on them is not checked."""
