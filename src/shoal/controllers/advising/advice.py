"""What is said to somebody whose object was taken as it is, although he cannot have meant it so.

Promises: the field, what it does as it stands, and what would do what was meant. Nothing is refused or changed for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b

import msgspec

from shoal.controllers.advising.around import Around
from shoal.store.live.item import Obj
from shoal.units.errors import one_line


class Advice(msgspec.Struct, frozen=True):
    reason: str
    """One word for the fault, in the way of Event reasons."""
    path: str
    """The field."""
    what: str
    fix: str

    def told(self) -> str:
        return one_line(f"{self.path}: {self.what}; {self.fix}")

    def mark(self, uid: str) -> str:
        """The same for the same fault of the same object, whoever finds it and whenever."""
        return blake2b(f"{uid}\n{self.reason}\n{self.told()}".encode(), digest_size=8).hexdigest()


Rule = Callable[[Obj, Around], Iterable[Advice]]
"""Looks at one object and at what is around it. The object may have any shape: of many kinds little is checked."""
