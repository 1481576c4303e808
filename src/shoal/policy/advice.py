"""Defines advice: a warning about an object that the API server accepted and that does something else than its author
intended. A rule finds advice for an object; it may look up nodes and other objects.

Guarantees: advice names the field, what it does now, and what would do what was intended. It rejects and changes no
object. An object that is not known yet, or may not be read, does not count as missing: wrong advice is worse than none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Protocol

import msgspec

from shoal.api.cost_budgets import CostBudgets
from shoal.api.taints import Taint
from shoal.policy.kinds import GroupKind
from shoal.units.errors import one_line

Obj = dict[str, Any]


class Correction(msgspec.Struct, frozen=True):
    """A change of one place in the text that corrects the fault; exactly one of both is given."""

    key: str = ""
    """The name that the field should have."""
    value: str = ""
    """The text of the scalar that the field should have, in YAML."""
    only_of: str = ""
    """The only text in the file that is replaced: `0755` is the number 493, which is no replacement for it."""


class Advice(msgspec.Struct, frozen=True):
    reason: str
    """The reason of the Event."""
    path: str
    """The field."""
    what: str
    fix: str
    correction: Correction | None = None
    fix_at_admission: str = ""
    """Replaces `fix` where that names other objects: who may create an object may not be allowed to list others."""

    def message(self) -> str:
        return one_line(f"{self.path}: {self.what}; {self.fix}")

    def event_key(self, uid: str) -> str:
        """The same for the same fault of the same object, in every process and at any time."""
        return blake2b(f"{uid}\n{self.reason}\n{self.message()}".encode(), digest_size=8).hexdigest()


class AdvisedNode(msgspec.Struct, frozen=True):
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()


class RuleContext(Protocol):
    """What a rule may look up beside its object."""

    def nodes(self) -> Iterable[AdvisedNode]: ...

    def find(self, kind: GroupKind, namespace: str, name: str) -> Obj | None: ...

    def all(self, kind: GroupKind, namespace: str = "") -> Iterable[Obj]:
        """In all namespaces if none is given."""
        ...

    def lacks(self, kind: GroupKind, namespace: str, name: str) -> bool:
        """Whether it is certain that the object does not exist."""
        ...

    def cost_budgets(self) -> CostBudgets:
        """What the budgets have spent, as far as it is known now."""
        ...
