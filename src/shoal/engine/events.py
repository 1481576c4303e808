"""Defines the events that change the facts, as small typed values: the engine's only input.

A world (a Kubernetes API server, a simulation, a file) says what it saw; the engine never asks. Each event is
complete in itself, so a recorded list of them replays to the same facts.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.api.taints import Taint
from shoal.devices.layout import PLAIN, Layout
from shoal.engine.asks import Ask
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.dra.devices import SliceFacts
from shoal.engine.dra.requests import ClaimFacts
from shoal.engine.groups import BudgetFacts, GroupFacts, TopologyFacts
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity


class NodeFacts(msgspec.Struct, frozen=True):
    """What placement needs to know of a node. `allocatable` is in base units, cpu in thousandths of a core."""

    name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    gpus: int = 0
    gpu_model: str = ""
    rank: int | None = None
    """Place in the fixed order that breaks ties, lowest first; by default the order of arrival."""
    layout: Layout = PLAIN
    """What its GPUs are beside their number."""


class NodeSeen(msgspec.Struct, frozen=True):
    """A node appeared, or something about it changed."""

    node: NodeFacts


class NodeRefused(msgspec.Struct, frozen=True):
    """The kubelet of a node refused a pod that we bound to it; sent after the end of that pod."""

    name: str
    ask: Ask
    resource: str = ""
    """What the kubelet says is lacking, where it says it."""
    owner: str = ""
    """Whose pods share the blame."""
    at_s: float = 0.0


class OthersSeen(msgspec.Struct, frozen=True):
    """Other schedulers place pods with GPUs on the same nodes, or do not any more."""

    place_gpus: bool


class NodeGone(msgspec.Struct, frozen=True):
    """A node left; pods on it are forgotten with it."""

    name: str


class PodArrived(msgspec.Struct, frozen=True, gc=False):
    """A pod waits for a node."""

    key: str
    ask: Ask
    priority: int = 0
    daemon_set: str = ""
    """The DaemonSet whose pod this is: the capacity set aside for it on its node is for this pod."""
    who: PodIdentity = NO_IDENTITY
    nominated: str = ""
    """The node for which it was nominated before."""


class PodBound(msgspec.Struct, frozen=True, gc=False):
    """A pod sits on a node: by our plan, or bound by another scheduler. Without a grant the engine picks devices."""

    key: str
    ask: Ask
    node: str
    grant: DeviceGrant | None = None
    priority: int = 0
    daemon_set: str = ""
    who: PodIdentity = NO_IDENTITY
    terminating: bool = False
    """The pod is terminating: it still uses its resources, for which other pods may be nominated."""
    positions: tuple[tuple[int, int], ...] = ()
    """Where no grant came with it: the devices that it holds by its annotation, and on each the first MIG slice, if
    any.
    """
    anew: bool = False
    """The pod holds other devices than those reported before."""


class PodRejected(msgspec.Struct, frozen=True, gc=False):
    """The world refused our placement; the pod waits again."""

    key: str


class PodStays(msgspec.Struct, frozen=True, gc=False):
    """The environment refused to evict a pod of our plan, for a disruption budget for example: the pod runs on."""

    key: str


class PodGone(msgspec.Struct, frozen=True, gc=False):
    """A pod ended or was deleted, waiting or bound."""

    key: str


class DaemonSetSeen(msgspec.Struct, frozen=True):
    """A DaemonSet exists: every node that it may run on reserves capacity until its pod is there."""

    name: str
    ask: Ask
    """Of each of its pods, with the tolerations that its controller adds."""


class DaemonSetGone(msgspec.Struct, frozen=True):
    """A DaemonSet was deleted: nothing is owed to it any more."""

    name: str


class GroupSeen(msgspec.Struct, frozen=True):
    """A gang appeared or changed."""

    group: GroupFacts


class GroupGone(msgspec.Struct, frozen=True):
    """A gang was deleted; its pods, if any are left, wait for one of that name."""

    name: str


class TopologySeen(msgspec.Struct, frozen=True):
    """Levels of closeness were declared."""

    topology: TopologyFacts


class TopologyGone(msgspec.Struct, frozen=True):
    """They were taken back."""

    name: str


class BudgetSeen(msgspec.Struct, frozen=True):
    """A disruption budget appeared, or allows another number by now."""

    budget: BudgetFacts


class BudgetGone(msgspec.Struct, frozen=True):
    """A disruption budget was deleted."""

    name: str
    namespace: str


class NamespaceSeen(msgspec.Struct, frozen=True):
    """A namespace and its labels, which affinity terms may select by."""

    name: str
    labels: Mapping[str, str] = {}


class DevicesSeen(msgspec.Struct, frozen=True):
    """A driver published a slice of a pool of devices, or changed it."""

    piece: SliceFacts


class DevicesGone(msgspec.Struct, frozen=True):
    """A slice was deleted."""

    name: str


class DeviceSetSeen(msgspec.Struct, frozen=True):
    """The devices (driver/pool/name) that requests mean by a name, as of now."""

    name: str
    devices: frozenset[str]


class ClaimSeen(msgspec.Struct, frozen=True):
    """A claim with a name of its own appeared, or its status changed."""

    claim: ClaimFacts


class ClaimGone(msgspec.Struct, frozen=True):
    """A claim was deleted."""

    key: str


Event = (
    NodeSeen
    | NodeRefused
    | OthersSeen
    | NodeGone
    | PodArrived
    | PodBound
    | PodRejected
    | PodStays
    | PodGone
    | DaemonSetSeen
    | DaemonSetGone
    | GroupSeen
    | GroupGone
    | TopologySeen
    | TopologyGone
    | BudgetSeen
    | BudgetGone
    | NamespaceSeen
    | DevicesSeen
    | DevicesGone
    | DeviceSetSeen
    | ClaimSeen
    | ClaimGone
)
