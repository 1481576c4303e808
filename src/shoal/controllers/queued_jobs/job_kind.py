"""The attributes of a kind of queued job: how it is suspended, how an admission is injected, and how its status is
read. Where its pod templates are is in `store/queues/job_parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.client.kind import Kind
from shoal.controllers.queued_jobs.pod_set_injection import IN_TEMPLATES, PodSetInjector
from shoal.controllers.queued_work.frameworks import framework_of
from shoal.store.queues.job_parts import SHAPES, JobShape, Obj, PodPart, Steps


class JobProgress(msgspec.Struct, frozen=True):
    """The state of a job by its own status."""

    is_active: bool
    """Some of its pods may still run."""
    is_ready: bool
    """All of its pods are ready or have succeeded."""
    reclaimable: Mapping[str, int] = {}
    """By pod set, how many pods have ended and will not be replaced."""


class QueuedJobKind(msgspec.Struct, frozen=True):
    kinds: tuple[Kind, ...]
    """The kind in all supported versions, the preferred one first."""
    progress_of: Callable[[Obj, Sequence[PodPart]], JobProgress]
    injector: PodSetInjector = IN_TEMPLATES
    suspended_by: Literal["field", "command"] = "field"
    """How the job is suspended: by a field of its spec, or by Commands to Volcano to abort and resume it."""
    restores_when: Literal["at once", "stopped", "idle"] = "at once"
    """When its templates may be restored: in the write that suspends it, after that, or when no pod runs."""
    needs_suspended_injection: bool = False
    """Its templates can be changed only while it is suspended, so that the injection needs a write before the start."""
    is_elastic: bool = False
    """It may change its size while it runs, if its annotation says so."""
    keeps_other_conditions: bool = False
    """Its controller keeps conditions of other controllers in its status."""
    priority_class: Steps = ()
    """Path of the field that names a PriorityClass for all of its pods."""
    refers_to: tuple[Kind, ...] = ()
    """Kinds of objects that define its pods."""

    @property
    def kind(self) -> Kind:
        return self.kinds[0]

    @property
    def framework(self) -> str:
        """The name of the kind in Kueue's configuration."""
        return framework_of(self.kind.group, self.kind.name)

    @property
    def shape(self) -> JobShape:
        return SHAPES[self.kind.group, self.kind.name]
