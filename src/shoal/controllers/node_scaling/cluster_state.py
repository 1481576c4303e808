"""Keeps what a planning of nodes depends on: the engine's facts of pods and gangs, and the objects as documents.

The documents of objects that have not changed are kept, so that a pass decodes what is new. The engine's facts are of
this controller alone, because it may run without the scheduling loop, or beside another scheduler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final
from weakref import WeakKeyDictionary

from shoal.api.conditions import find_condition
from shoal.api.decode import Document, Unknown
from shoal.api.pod import Pod
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import NODE_CLAIMS, NODE_POOLS
from shoal.client.item import Item
from shoal.client.kind import (
    DAEMON_SETS,
    DEVICE_CLASSES,
    DISRUPTION_BUDGETS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Kind,
)
from shoal.client.served import Served
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event
from shoal.engine.intake import Intake
from shoal.engine.reasons import Code
from shoal.store.inventory import Inventory
from shoal.store.watched.cluster import WatchedCluster, WatchSettings
from shoal.store.watched.reading import document_of
from shoal.units.errors import UserError

_log = logging.getLogger("shoal.nodes")
_OF_QUEUES: Final = (f"{Code.OVER_LIMIT}:", f"{Code.OVER_QUOTA}:")
"""How the messages of pods begin that a queue of KAI holds: another node would not help them."""
_QUEUE_IS_FULL: Final = "queue resource quota insufficient"
"""The same of Volcano."""
UNSCHEDULABLE: Final = "Unschedulable"
_KINDS: Final = (
    NODE_POOLS,
    NODE_CLAIMS,
    NAMESPACES,
    NODES,
    DAEMON_SETS,
    DISRUPTION_BUDGETS,
    VOLUME_CLAIMS,
    VOLUMES,
    STORAGE_CLASSES,
    PRIORITY_CLASSES,
    PODS,
)
_OF_CLAIMS: Final = (DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS)
"""Not every server has them."""


class ScalingState:
    def __init__(
        self, context: Context, served: Served, schedulers: frozenset[str], pools: Kind, wake: Callable[[], None]
    ) -> None:
        """`pools`: the NodePools in the version that is served."""
        self._informers = context.informers
        self._served = served
        self._kinds = tuple(pools if kind == NODE_POOLS else kind for kind in _KINDS)
        self._watched = WatchedCluster(context, served, WatchSettings(schedulers), wake)
        self._intake = Intake(Cluster())
        self._documents: WeakKeyDictionary[Item, Document | UserError] = WeakKeyDictionary()

    @property
    def cluster(self) -> Cluster:
        return self._intake.cluster

    async def synced(self) -> None:
        await self._watched.synced()
        await self._informers.synced(self._kinds)

    def refresh(self) -> None:
        """Apply the changes since the last call to the engine's facts."""
        for event in self._watched.drain():
            if not self._has_applied(event):
                self._watched.report_again(event)

    def _has_applied(self, event: Event) -> bool:
        try:
            self._intake.apply(event)
        except Exception:  # noqa: BLE001 - any error concerns this event only
            _log.exception("event %s could not be applied", type(event).__name__)
            return False
        return True

    def inventory(self) -> Inventory:
        """All objects that can be read."""
        return Inventory(self._all_documents())

    def homes_of_unread(self) -> frozenset[str]:
        """The nodes with pods that could not be read: such a node only seems to be empty."""
        raw = (item.obj() for item in self._informers.of(PODS) if isinstance(self._documents.get(item), UserError))
        running = (each for each in raw if (each.get("status") or {}).get("phase") not in TERMINAL_PHASES)
        return frozenset(str(each["spec"].get("nodeName") or "") for each in running) - {""}

    def _all_documents(self) -> Iterator[Document]:
        served = (each for kind in _OF_CLAIMS if (each := self._served.find(kind)) is not None)
        for kind in (*self._kinds, *served):
            for item in self._informers.of(kind):
                found = self._documents.get(item)
                if found is None:
                    found = self._documents[item] = _read(kind, item)
                if isinstance(found, Document):
                    yield found


def _read(kind: Kind, item: Item) -> Document | UserError:
    try:
        document = document_of(kind, item)
    except UserError as error:
        _log.warning("%s", error)
        return error
    if isinstance(document.value, Unknown):
        # Objects of lists lack both, and the readers of pools need them.
        document.value.raw.setdefault("apiVersion", kind.api_version)
        document.value.raw.setdefault("kind", kind.name)
    return document


def unschedulable(inventory: Inventory, reason: str = UNSCHEDULABLE) -> dict[str, Pod]:
    """The pods that a scheduler has refused for lack of a node, by namespace and name. One that a queue holds back
    would not run on a new node either. `reason`: that of the scheduler."""
    return {each.value.metadata.key: each.value for each in inventory.of(Pod) if _needs_node(each.value, reason)}


def _needs_node(pod: Pod, reason: str) -> bool:
    if pod.spec.node_name or pod.is_finished() or pod.is_terminating() or pod.status.nominated_node_name:
        return False
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if condition is None or condition.status != "False" or condition.reason != reason:
        return False
    return not (condition.message.startswith(_OF_QUEUES) or _QUEUE_IS_FULL in condition.message)
