"""The pod sets of a job, and the row of a job kind in the table, as plain values: code that writes jobs needs fields
that this package does not model.

Rejected: typed templates here. They omit unknown fields, and a Workload made of them would describe other pods than
those that the job creates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from shoal.client.kind import Kind
from shoal.units.errors import Where

Obj = dict[str, Any]
Steps = tuple[str | int, ...]
"""The path from an object to one of its fields."""
Replicas = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class PodPart(msgspec.Struct, frozen=True):
    name: str
    count: int
    template: Obj
    at: Steps
    """The path of the template in the object."""
    is_made: bool = False
    """The template is not a field: it was derived from the field at `path`, or from another object."""
    least: int | None = None
    """The minimum count; the job may start with so many pods and is then scaled down."""
    index_label: str = ""
    """The label with the index of a pod."""
    sub_group_label: str = ""
    sub_groups: int | None = None


class Ending(msgspec.Struct, frozen=True):
    message: str
    is_success: bool


ObjectLookup = Callable[[str, str, str], Obj | None]
"""An object that a job refers to: kind, namespace (empty: cluster-wide) and name."""
Reader = Callable[[Obj, Where, ObjectLookup], tuple[PodPart, ...]]
"""Reads the parts of a whole object. Errors name the field; the location is that of the object."""


def _never(_job: Obj) -> bool:
    return False


class JobShape(msgspec.Struct, frozen=True):
    read: Reader
    suspend: Steps
    """The field that suspends the job; empty for a kind without one."""
    ending: Callable[[Obj], Ending | None]
    """None while the job may still create pods."""
    is_left_alone: Callable[[Obj], bool] = _never
    """Whether queues ignore the object, because its pods belong to another one."""


class JobKind(msgspec.Struct, frozen=True):
    """One row of the table of job kinds."""

    kind: Kind
    shape: JobShape
    older: tuple[str, ...] = ()
    """Older supported versions."""
    replica_types: bool = False
    """Whether the kind belongs to Kubeflow's training operator: its pods have the labels of that operator."""
    has_predictable_pods: bool = False
    """Whether the pods follow from the object alone, so that its manifest determines them."""

    @property
    def versions(self) -> tuple[Kind, ...]:
        """The kind in all versions, the preferred one first."""
        return (self.kind, *(self.kind._replace(version=version) for version in self.older))


def no_lookup(_kind: str, _namespace: str, _name: str) -> Obj | None:
    """For callers that cannot look up other objects."""
    return None


def dig(value: Any, steps: Iterable[str | int]) -> Any:
    """The value at a path; None where the path does not exist."""
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and 0 <= step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return None
    return value


def path_of(steps: Iterable[str | int]) -> str:
    """`spec.workers[0].template`."""
    where = Where()
    for step in steps:
        where = where.below(f"[{step}]" if isinstance(step, int) else step)
    return where.path
