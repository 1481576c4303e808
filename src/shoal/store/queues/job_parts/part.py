"""One pod set of a job, as plain values: code that writes jobs needs the fields that this package does not model.

Rejected: typed templates here. They leave out what they do not know, and a Workload made of them would promise other
pods than the job makes.
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
"""The way from an object to a field in it."""
Replicas = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class PodPart(msgspec.Struct, frozen=True):
    name: str
    count: int
    template: Obj
    at: Steps
    """Where the template stands in the object."""
    is_made: bool = False
    """The template stands nowhere: it was made of what stands there, or of another object."""
    least: int | None = None
    """With so many it may start, and is made smaller then."""
    index_label: str = ""
    """By which the pods are numbered."""
    sub_group_label: str = ""
    sub_groups: int | None = None


class Ending(msgspec.Struct, frozen=True):
    message: str
    is_success: bool


ObjectLookup = Callable[[str, str, str], Obj | None]
"""An object that a job refers to: kind, namespace (empty: cluster-wide) and name."""
Reader = Callable[[Obj, Where, ObjectLookup], tuple[PodPart, ...]]
"""Of a whole object. Complaints name the field; the place is the object's."""


def _never(_job: Obj) -> bool:
    return False


class JobShape(msgspec.Struct, frozen=True):
    read: Reader
    suspend: Steps
    """The field that holds its pods back; empty for a kind that has none."""
    ending: Callable[[Obj], Ending | None]
    """None while it may still make pods."""
    is_left_alone: Callable[[Obj], bool] = _never
    """Queues have nothing to say about such a one: its pods are another's."""


class JobKind(msgspec.Struct, frozen=True):
    """One row of the table of job kinds."""

    kind: Kind
    shape: JobShape
    older: tuple[str, ...] = ()
    """Older versions that are read as well."""
    replica_types: bool = False
    """A kind of Kubeflow's training operator: its pods have the labels of that operator."""
    has_predictable_pods: bool = False
    """Its pods follow from the object alone, so that a manifest is enough to know them."""

    @property
    def versions(self) -> tuple[Kind, ...]:
        """The kind in all versions, the preferred one first."""
        return (self.kind, *(self.kind._replace(version=version) for version in self.older))


def no_lookup(_kind: str, _namespace: str, _name: str) -> Obj | None:
    """Where no other object can be looked up."""
    return None


def dig(value: Any, steps: Iterable[str | int]) -> Any:
    """What stands there; None where the way ends earlier."""
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
