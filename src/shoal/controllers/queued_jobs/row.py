"""What one row of the table of job kinds says beyond where its templates stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.controllers.queued_jobs.dressing import IN_TEMPLATES, Dressing
from shoal.controllers.queued_work.frameworks import framework_of
from shoal.store.live.kind import Kind
from shoal.store.queues.job_parts import SHAPES, JobShape, Obj, PodPart, Steps


class Course(msgspec.Struct, frozen=True):
    """How far a job is, by its own status."""

    is_active: bool
    """Some of its pods may still run."""
    is_ready: bool
    """All of its pods are ready, or have done their work."""
    reclaimable: Mapping[str, int] = {}
    """By pod set, how many pods have ended and will not come again."""


class JobRow(msgspec.Struct, frozen=True):
    kinds: tuple[Kind, ...]
    """In the versions that will do, the best one first."""
    course: Callable[[Obj, Sequence[PodPart]], Course]
    dressing: Dressing = IN_TEMPLATES
    switch: Literal["field", "command"] = "field"
    """`command`: Volcano is told to abort and to resume it."""
    restores_when: Literal["at once", "stopped", "idle"] = "at once"
    """When its templates may be given back: in the very write that suspends it, after that, or when no pod runs."""
    is_dressed_first: bool = False
    """Its templates may be changed only while it is suspended, which it has to be in a write of its own."""
    is_elastic: bool = False
    """It may change its size while it runs, if it says that it will."""
    keeps_conditions: bool = False
    """Its controller leaves conditions of others in its status alone."""
    priority_class: Steps = ()
    """Where it names a PriorityClass for all of its pods."""
    refers_to: tuple[Kind, ...] = ()
    """Kinds that have to be looked up to know its pods."""

    @property
    def kind(self) -> Kind:
        return self.kinds[0]

    @property
    def framework(self) -> str:
        """As Kueue's configuration calls it."""
        return framework_of(self.kind.group, self.kind.name)

    @property
    def shape(self) -> JobShape:
        return SHAPES[self.kind.group, self.kind.name]
