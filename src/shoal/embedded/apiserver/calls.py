"""A request on a resource with its user and options, and the same request for admission."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from shoal.embedded.apiserver.large_work import Turn
from shoal.units.errors import BugError

if TYPE_CHECKING:
    from shoal.embedded.apiserver.resource import Resource

Obj = dict[str, Any]
Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "connect"]
FieldValidation = Literal["Strict", "Warn", "Ignore"]
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
"""What admission calls a write."""


class Actor(msgspec.Struct, frozen=True):
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


SERVER = Actor("system:apiserver", ("system:masters",))
"""The server itself, where it acts on objects of its own accord."""
ANONYMOUS = Actor("system:anonymous", ("system:unauthenticated",))


class Call(msgspec.Struct):
    """A request on a resource. `warnings` is filled on the way and becomes headers of the answer."""

    verb: Verb
    resource: Resource
    actor: Actor
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    field_manager: str = ""
    dry_run: bool = False
    validation: FieldValidation = "Warn"
    force: bool = False
    """Server-side apply: take fields from other managers."""
    through_scale: bool = False
    """The write of the object is what a write of its scale comes to."""
    warnings: list[str] = msgspec.field(default_factory=list)
    size: int = 0
    """Bytes of the body, or of the object that is written. Large ones are worked on outside of the event loop."""
    headers: Mapping[str, str] = _NO_HEADERS
    """Sent with the answer of a watch; to other answers they are added when they are made."""
    begun: Callable[[], None] | None = None
    """Called when a watch has begun, or all but a YAML answer is done: a request counts in flow control until then."""
    turn: Turn | None = None
    """Set with the first piece of such work."""
    charge: Callable[[float], None] | None = None
    """Told the processor time of such work."""


class AdmissionAttributes(msgspec.Struct):
    """A write on its way in, as admission plugins see it. Mutating ones change `obj` in place or replace it."""

    operation: Operation
    call: Call
    name: str
    obj: Obj | None
    old: Obj | None
    options: Obj = msgspec.field(default_factory=dict)
    """The CreateOptions, UpdateOptions ... as sent."""

    @property
    def kind(self) -> str:
        return self.call.resource.kind

    @property
    def namespace(self) -> str:
        return self.call.namespace

    @property
    def written(self) -> Obj:
        """The object of a create or an update."""
        if self.obj is None:
            raise BugError(f"an admission plugin left nothing of a {self.kind}")
        return self.obj

    def warn(self, text: str) -> None:
        self.call.warnings.append(text)
