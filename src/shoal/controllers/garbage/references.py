"""What the collector reads of an object: who owns it, and whether and how it is ending.

Most objects have no owners and are not ending; a search in the bytes tells that at a tenth of the price of decoding
them. It may say yes of an object whose annotations merely contain the words, which costs one decoding.
"""

from __future__ import annotations

import msgspec

from shoal.store.live.item import Item

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class Owner(msgspec.Struct, rename="camel", frozen=True, gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Ties(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """The part of an object's metadata that garbage collection is about."""

    owner_references: tuple[Owner, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None

    @property
    def owners(self) -> tuple[Owner, ...]:
        return self.owner_references or ()

    @property
    def is_ending(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def waits_for_dependents(self) -> bool:
        """Deleted in the foreground: it goes when those that block it are gone."""
        return self.is_ending and FOREGROUND in (self.finalizers or ())

    @property
    def lets_dependents_go(self) -> bool:
        """Deleted with its dependents left alive: it goes when none of them names it any more."""
        return self.is_ending and ORPHAN in (self.finalizers or ())


class _Slim(msgspec.Struct, gc=False):
    metadata: Ties


_NOTHING = Ties()
_decoder = msgspec.json.Decoder(_Slim)


def ties(item: Item) -> Ties:
    if b'"ownerReferences"' not in item.data and b'"deletionTimestamp"' not in item.data:
        return _NOTHING
    return _decoder.decode(item.data).metadata
