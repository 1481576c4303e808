"""Counts new pods, and the admission rules that each broke when it was created, for `shoal policy preview --window`.

Only the nodes and the labels of the namespace are looked up, which the recorder watches anyway. Pods of one workload
with the same spec are judged once in an hour: a gang has hundreds.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from shoal.api.partial import PartialNode
from shoal.api.wire import ApiStruct
from shoal.client.context import Context
from shoal.client.item import Item, Obj, Seen
from shoal.client.kind import NAMESPACES, NODES
from shoal.cost.records import Holder
from shoal.policy import kinds
from shoal.policy.admission_rules.modes import SYSTEM_NAMESPACES
from shoal.policy.admission_rules.past import HOUR_MS, CreatedPods, broken_rules
from shoal.policy.advice import AdvisedNode
from shoal.policy.kinds import GroupKind
from shoal.policy.object_set import ObjectSet
from shoal.store.history.pod_rows import RecordedPod

_log = logging.getLogger("shoal.history")
_OWN_NAMES = re.compile(rb'"(?:nodeName|hostname)":"[^"]*"|kube-api-access-[a-z0-9]{5}')
"""What differs between the pods of one template."""
_MOST_KNOWN = 1024


class _SpecBytes(ApiStruct, frozen=True):
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _RecordedObjects(ObjectSet):
    """The lookups of rules: other objects than nodes and namespaces are not known, and so never missing."""

    def __init__(self, context: Context) -> None:
        super().__init__(())
        self._context = context
        self._node = Seen(PartialNode)

    def nodes(self) -> Iterable[AdvisedNode]:
        for item in self._context.informers.of(NODES):
            node = self._node(item)
            yield AdvisedNode(node.metadata.labels, node.spec.taints)

    def find(self, kind: GroupKind, namespace: str, name: str) -> Obj | None:
        if kind != kinds.NAMESPACE:
            return super().find(kind, namespace, name)
        item = self._context.informers.of(NAMESPACES).get("", name)
        return None if item is None else item.obj()


class CreatedPodJudge:
    def __init__(self, context: Context) -> None:
        self._objects = _RecordedObjects(context)
        self._known: dict[tuple[str, int, bytes], tuple[str, ...]] = {}
        """The broken rules by the uid of the owner, the hour, and the hash of the spec."""

    def read(self, item: Item, pod: RecordedPod, holder: Holder, since_ms: int) -> CreatedPods | None:
        """None in a namespace without rules, and for a pod that was not created after this moment."""
        created = pod.metadata.creation_timestamp
        if created is None or item.namespace in SYSTEM_NAMESPACES:
            return None
        at_ms = round(created.timestamp() * 1000)
        if at_ms <= since_ms:
            return None
        owner = pod.metadata.controller()
        broken = self._broken(item, "" if owner is None else owner.uid, at_ms // HOUR_MS)
        kind, name = (holder.owner_kind, holder.job) if holder.job else ("Pod", item.name)
        return CreatedPods(item.namespace, kind, name, at_ms, at_ms + 1, 1, broken)

    def _broken(self, item: Item, owner: str, hour: int) -> tuple[str, ...]:
        if not owner:
            return self._judged(item)
        spec = _OWN_NAMES.sub(b"", bytes(item.read(_SpecBytes).spec))
        # A spec may have a megabyte.
        key = owner, hour, blake2b(spec, digest_size=16).digest()
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._judged(item)
        return found

    def _judged(self, item: Item) -> tuple[str, ...]:
        return broken_rules({"apiVersion": "v1", "kind": "Pod", **item.obj()}, self._objects)


class CreatedPodCounter:
    """Pods are counted once, also by a recorder that starts again."""

    def __init__(self, context: Context) -> None:
        self._judge = CreatedPodJudge(context)
        self.counted: list[CreatedPods] = []
        """Not stored yet."""
        self._waiting: deque[tuple[Item, RecordedPod, Holder]] = deque()
        self._seen: set[str] = set()
        """By uid."""
        self._since_ms = -1

    def resume(self, until_ms: int) -> None:
        """Pods that were created until then were counted by an earlier recorder."""
        self._since_ms = until_ms

    def count(self, item: Item, pod: RecordedPod, holder: Holder) -> None:
        if item.uid in self._seen:
            return
        self._seen.add(item.uid)
        self._waiting.append((item, pod, holder))

    def judge(self, most: int) -> bool:
        """Judge so many of the pods by the admission rules; whether none is left. For a pod without an owner this takes
        longer than to record it, and nothing waits for it."""
        for _ in range(min(most, len(self._waiting))):
            item, pod, holder = self._waiting.popleft()
            try:
                found = self._judge.read(item, pod, holder, self._since_ms)
            except Exception:  # noqa: BLE001 - a rule that fails for an unusual pod must not end the record of devices
                _log.exception("pod %s/%s is not judged by the admission rules", item.namespace, item.name)
                continue
            if found is not None:
                self.counted.append(found)
        return not self._waiting

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._seen.discard(uid)

    def stored(self) -> None:
        """What was counted until now."""
        self.counted.clear()
