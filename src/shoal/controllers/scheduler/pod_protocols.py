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
    """The reasons for which a pod may be held back from the engine."""

    @property
    def uid(self) -> str: ...

    @property
    def who(self) -> PodIdentity: ...

    @property
    def waits_for(self) -> str:
        """A reason to wait with kube-scheduler's message, for example a missing volume."""
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
    """The last seen pods."""

    def view(self, key: str, /) -> PodView | None: ...

    @property
    def others_place_gpus(self) -> bool:
        """Whether there are pods of other schedulers that ask for GPUs, waiting or on a node."""
        ...

    def unheard(self, node: str, /) -> Sequence[tuple[str, Ask]]:
        """Pods that were seen on the node and are not in the facts yet, unless this scheduler placed them."""
        ...

    def states(self) -> Sequence[tuple[str, UnplaceablePod]]:
        """All pods."""
        ...

    def beside_volumes(self, key: str, /) -> tuple[Ask, PodIdentity, str] | None:
        """The ask of a pod without its volumes, its identity, and the message for nodes that only its volumes
        exclude.
        """
        ...

    def take_troubles(self) -> Sequence[ObjectFault]:
        """The faults of objects since the last call."""
        ...


class Writer(Protocol):
    """Prepares claims and volumes of a pod for its node."""

    async def prepare(self, view: PodView, place: Place, is_wanted: Callable[[], bool], /) -> Mapping[str, str]:
        """Prepare claims and volumes, which may take minutes; returns the annotations of the binding. Raises an error
        as soon as the decision no longer holds.

        May be called again for the same pod, by this process or after a crash by the next one.
        """
        ...

    async def free(self, view: PodView, /) -> None:
        """Undo preparations for this pod alone, which is on no node and may need another one."""
        ...
