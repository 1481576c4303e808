"""The dependencies of every operation: the state, the catalog, admission, the clock and the generator of ids.

Rejected: operations as methods of one class. They share these collaborators and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

import msgspec

from shoal.embedded.apiserver.admission.quota.accounts import Accounts
from shoal.embedded.apiserver.admission.quota.usage_arithmetic import QuotaCharge
from shoal.embedded.apiserver.calls import AdmissionAttributes, Call, Operation
from shoal.embedded.apiserver.catalog import ResourceCatalog
from shoal.embedded.apiserver.large_work import LARGE_BYTES, LargeWork, Turn
from shoal.embedded.apiserver.resource import Obj, Ref, Resource
from shoal.embedded.apiserver.rest.pending_write import PendingWrite
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.state.state import State

P = ParamSpec("P")
R = TypeVar("R")


class BuiltInAdmission(Protocol):
    """Built-in admission: quick, synchronous, over the state."""

    def mutate(self, admission: AdmissionAttributes) -> None: ...

    def validate(self, admission: AdmissionAttributes) -> None: ...


class Dynamic(Protocol):
    """Admission that users configure: policies in CEL and webhooks. May wait for others."""

    def concerns(self, call: Call, operation: Operation) -> bool:
        """Whether anything is configured for such a write; if not, the two below are not called."""

    def asks_webhooks(self, call: Call, operation: Operation) -> bool:
        """Whether any of it may ask a webhook, which may take seconds and write to the same object."""

    async def mutate(self, admission: AdmissionAttributes) -> None: ...

    async def validate(self, admission: AdmissionAttributes) -> None: ...


class Quotas(Protocol):
    def refs(self, admission: AdmissionAttributes, *, gone: bool = False) -> Sequence[Ref]:
        """The quotas that such a write may count against. `gone`: the object goes with it."""

    def charges(self, admission: AdmissionAttributes, *, gone: bool = False) -> Sequence[QuotaCharge]:
        """What one write comes to, or ApiError when a quota is exceeded."""

    def accounts(self, namespace: str) -> Accounts:
        """The quotas of a namespace, to charge several writes one after another."""

    def charge(self, accounts: Accounts, admission: AdmissionAttributes, *, gone: bool = False) -> None:
        """Take what a write comes to, or ApiError when a quota is exceeded."""

    def counted(self, quota: Obj) -> QuotaCharge:
        """What there is, counted anew."""


class QuotaCommits(Protocol):
    async def committed(self, context: ServerContext, write: PendingWrite) -> list[Record]:
        """Charge the write to the quotas of its namespace and commit it."""
        ...


class Clock(Protocol):
    def text(self) -> str:
        """Now, as in `2026-11-21T10:00:00Z`."""

    def seconds(self) -> float: ...


Convert = Callable[[list[Obj], str, Resource], Awaitable[list[Obj]]]
"""Objects of a custom resource, to a version (apiVersion text), by its conversion."""


class ServerContext(msgspec.Struct):
    state: State
    catalog: ResourceCatalog
    plugins: BuiltInAdmission
    dynamic: Dynamic
    quotas: Quotas
    clock: Clock
    convert: Convert
    new_uid: Callable[[], str]
    quota_commits: QuotaCommits
    new_suffix: Callable[[], str]
    """Five letters for generateName."""
    default_objects: Callable[[Ref], Sequence[tuple[Ref, Obj]]] = lambda _: ()
    """What is stored with a new object of this address: the default account of a namespace."""
    authorizer: Any = None
    """Asked by policies (`authorizer`) and reviews."""
    large: LargeWork = msgspec.field(default_factory=LargeWork)


async def computed(context: ServerContext, call: Call, work: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
    """The result of work that only computes: at once, or outside of the event loop if the request is large."""
    if call.size < LARGE_BYTES:
        return work(*args, **more)
    return await context.large.run(turn_of(call), work, *args, **more)


def turn_of(call: Call) -> Turn:
    if call.turn is None:
        call.turn = Turn(call.actor.name, call.charge)
    return call.turn
