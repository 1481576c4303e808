"""Reads the pods that scheduling gates hold, and patches them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import field

from shoal.api.meta import ObjectMeta
from shoal.api.partial import PodPhaseStatus
from shoal.api.pod import SchedulingGate
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.context import Context
from shoal.client.item import Item, Obj, Seen
from shoal.client.kind import PODS
from shoal.client.port import Patch
from shoal.client.refusals import RefusedError


class _GatedPodSpec(msgspec.Struct, rename="camel", gc=False):
    node_selector: dict[str, str] = field(default_factory=dict)
    scheduling_gates: tuple[SchedulingGate, ...] = ()


class GatedPod(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: _GatedPodSpec = field(default_factory=_GatedPodSpec)
    status: PodPhaseStatus = field(default_factory=PodPhaseStatus)

    def has_gate(self, name: str) -> bool:
        return any(gate.name == name for gate in self.spec.scheduling_gates)

    def gates_without(self, name: str) -> list[Obj] | None:
        """As a patch writes them; None if there are no others."""
        return [{"name": gate.name} for gate in self.spec.scheduling_gates if gate.name != name] or None

    @property
    def is_finished(self) -> bool:
        return self.status.phase in TERMINAL_PHASES


gated_pod: Seen[GatedPod] = Seen(GatedPod)


async def patch_all(context: Context, patches: Iterable[tuple[Item, Obj]]) -> None:
    """Patch every pod; a pod whose patch is refused delays no other. Raises the last refusal at the end, so that the
    caller retries with a growing delay."""
    refused: RefusedError | None = None
    for item, patch in patches:
        try:
            await context.api.patch(PODS, item.namespace, item.name, Patch("merge", patch))
        except RefusedError as error:
            refused = error
    if refused is not None:
        raise refused
