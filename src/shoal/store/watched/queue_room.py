"""Tracks the usage of nodes by pods outside queues, as topology placement counts it, pod by pod.

Pods of a workload whose pod set has a topology assignment are counted by that assignment, wherever they run; all other
pods on a node count as used capacity. Without a queue that places by topology, no pod is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from shoal.api.pod import PodSpec
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.resources import PODS, effective_requests
from shoal.api.wire import dec_hook
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import PODS as POD_KIND
from shoal.engine.queues.facts import Amounts
from shoal.store.queues.manifest_queues import WORKLOAD_ANNOTATION
from shoal.store.queues.non_tas_usage import POD_SET_LABEL

_MOST_SPECS = 10_000
_spec_decoder = msgspec.json.Decoder(PodSpec, dec_hook=dec_hook)


class _QuotaPodMeta(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _QuotaPodStatus(msgspec.Struct, gc=False):
    phase: str = ""


class _Bound(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    containers: msgspec.Raw = msgspec.Raw()
    init_containers: msgspec.Raw = msgspec.Raw()
    overhead: msgspec.Raw = msgspec.Raw()
    resources: msgspec.Raw = msgspec.Raw()


class _QuotaPodHead(msgspec.Struct, gc=False):
    metadata: _QuotaPodMeta = msgspec.field(default_factory=_QuotaPodMeta)
    spec: msgspec.Raw = msgspec.Raw()
    status: _QuotaPodStatus = msgspec.field(default_factory=_QuotaPodStatus)


_heads = msgspec.json.Decoder(_QuotaPodHead)
_bounds = msgspec.json.Decoder(_Bound)


class _Taking(msgspec.Struct, frozen=True):
    node: str
    workload: str
    pod_set: str
    amounts: Amounts


class TakenRoom:
    """`accounted`: the pod sets of a workload that topology assignments cover."""

    def __init__(self, accounted: Callable[[str], Collection[str]]) -> None:
        self._accounted = accounted
        self._pods: dict[tuple[str, str], _Taking] = {}
        self._of: dict[str, set[tuple[str, str]]] = {}
        """By workload."""
        self._on: dict[str, Amounts] = {}
        self._counts: dict[tuple[str, str], bool] = {}
        """Pods, and whether each counts as usage outside queues."""
        self._amounts: dict[bytes, Amounts] = {}
        self.stirred: set[str] = set()
        """Nodes whose usage changed."""
        self.is_on = False

    def follow(self, context: Context, wake: Callable[[], None]) -> None:
        """Start reading pods."""
        if self.is_on:
            return
        self.is_on = True

        def changed(before: Item | None, after: Item | None) -> None:
            if after is None:
                if before is not None:
                    self._put(before.key, None)
            else:
                self._put(after.key, self._taking(after))
            if self.stirred:
                wake()

        context.informers.of(POD_KIND).on_change(changed)

    def on(self, node: str) -> Amounts:
        return {name: amount for name, amount in self._on.get(node, {}).items() if amount}

    def recount(self, workload: str) -> None:
        """Count the pods of a workload again, after a change of its topology assignments."""
        for key in self._of.get(workload, ()):
            self._count(key)

    def _taking(self, item: Item) -> _Taking | None:
        try:
            head = _heads.decode(item.data)
            bound = _bounds.decode(head.spec)
            if not bound.node_name or head.status.phase in TERMINAL_PHASES:
                return None
            amounts = self._amounts_of(bound, head.spec)
        except msgspec.DecodeError:
            return None
        labels, annotations = head.metadata.labels or {}, head.metadata.annotations or {}
        name = annotations.get(WORKLOAD_ANNOTATION, "")
        workload = f"{item.namespace}/{name}" if name else ""
        return _Taking(bound.node_name, workload, labels.get(POD_SET_LABEL, ""), amounts)

    def _amounts_of(self, bound: _Bound, spec: msgspec.Raw) -> Amounts:
        parts = (bound.containers, bound.init_containers, bound.overhead, bound.resources)
        key = b"|".join(map(bytes, parts))
        found = self._amounts.get(key)
        if found is None:
            if len(self._amounts) >= _MOST_SPECS:
                self._amounts.clear()
            found = self._amounts[key] = {**effective_requests(_spec_decoder.decode(spec)), PODS: 1}
        return found

    def _put(self, key: tuple[str, str], taking: _Taking | None) -> None:
        before = self._pods.get(key)
        if before == taking:
            return
        if before is not None:
            self._change(key, is_taken=False)
            del self._pods[key], self._counts[key]
            self._of[before.workload].discard(key)
            if not self._of[before.workload]:
                del self._of[before.workload]
        if taking is not None:
            self._pods[key] = taking
            self._counts[key] = False
            self._of.setdefault(taking.workload, set()).add(key)
            self._count(key)

    def _count(self, key: tuple[str, str]) -> None:
        taking = self._pods[key]
        sets = self._accounted(taking.workload) if taking.workload else ()
        self._change(key, is_taken=not (sets and (not taking.pod_set or taking.pod_set in sets)))

    def _change(self, key: tuple[str, str], *, is_taken: bool) -> None:
        if self._counts[key] == is_taken:
            return
        self._counts[key] = is_taken
        taking, sign = self._pods[key], 1 if is_taken else -1
        there = self._on.setdefault(taking.node, {})
        for name, amount in taking.amounts.items():
            there[name] = there.get(name, 0) + sign * amount
        if not any(there.values()):
            # The node may have been deleted with its pods.
            del self._on[taking.node]
        self.stirred.add(taking.node)
