"""Reads what the garbage collector needs of an object: its owners, and whether and how it is being deleted.

Most objects have no owners and are not being deleted; a search in the bytes finds that at a tenth of the cost of
decoding. The search may match an object whose annotations contain the words, which costs one decoding.
"""

from __future__ import annotations

import msgspec

from shoal.client.item import Item

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class BlockingOwner(msgspec.Struct, rename="camel", frozen=True, gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class OwnerLinks(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """The metadata fields that garbage collection reads."""

    owner_references: tuple[BlockingOwner, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None

    @property
    def owners(self) -> tuple[BlockingOwner, ...]:
        return self.owner_references or ()

    @property
    def is_terminating(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def waits_for_dependents(self) -> bool:
        """Whether it is deleted in the foreground, after its blocking dependents."""
        return self.is_terminating and FOREGROUND in (self.finalizers or ())

    @property
    def orphans_dependents(self) -> bool:
        """Whether it is deleted with the policy Orphan, after no dependent refers to it."""
        return self.is_terminating and ORPHAN in (self.finalizers or ())


class _Slim(msgspec.Struct, gc=False):
    metadata: OwnerLinks


_NOTHING = OwnerLinks()
_decoder = msgspec.json.Decoder(_Slim)


def owner_links(item: Item) -> OwnerLinks:
    if b'"ownerReferences"' not in item.data and b'"deletionTimestamp"' not in item.data:
        return _NOTHING
    return _decoder.decode(item.data).metadata
