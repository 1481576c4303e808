"""Protocols of the pods and claims that plan executors read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from shoal.engine.asks import Ask
from shoal.engine.plan import Place
from shoal.engine.pod_identity import PodIdentity
from shoal.store.object_faults import ObjectFault
from shoal.store.watched.pod_views import PodView


class UnplaceablePod(Protocol):
    """A pod as far as it may be kept from the engine."""

    @property
    def uid(self) -> str: ...

    @property
    def who(self) -> PodIdentity: ...

    @property
    def waits_for(self) -> str:
        """A volume that is not there, say, in kube-scheduler's words."""
        ...

    @property
    def fault(self) -> str: ...

    @property
    def gates(self) -> Sequence[str]: ...

    @property
    def node(self) -> str: ...

    @property
    def is_terminating(self) -> bool: ...


class PodViews(Protocol):
    """Pods as they were seen last."""

    def view(self, key: str, /) -> PodView | None: ...

    @property
    def others_place_gpus(self) -> bool:
        """Whether there are pods of other schedulers that ask for GPUs, waiting or on a node."""
        ...

    def unheard(self, node: str, /) -> Sequence[tuple[str, Ask]]:
        """Pods that were seen on the node, and that the facts do not have yet unless we put them there."""
        ...

    def states(self) -> Sequence[tuple[str, UnplaceablePod]]:
        """All pods."""
        ...

    def beside_volumes(self, key: str, /) -> tuple[Ask, PodIdentity, str] | None:
        """What a pod asks for apart from its volumes, who it is, and what is said of nodes that only they rule out."""
        ...

    def take_troubles(self) -> Sequence[ObjectFault]:
        """What is wrong with objects, since the last call."""
        ...


class Writer(Protocol):
    """Makes what a pod needs ready on its node."""

    async def prepare(self, view: PodView, place: Place, is_wanted: Callable[[], bool], /) -> Mapping[str, str]:
        """Claims and volumes are the pod's when this returns, which may take minutes; annotations for its binding.
        Raises as soon as the pod is not wanted there any more.

        May be called again for a pod that it was called for before, by this process or by one that was killed.
        """
        ...

    async def free(self, view: PodView, /) -> None:
        """What was made ready for the pod alone and keeps it from other nodes is taken back; it is on none."""
        ...
