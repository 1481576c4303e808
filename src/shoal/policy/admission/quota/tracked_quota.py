"""One quota: what it allows, what it says is used, and the arithmetic of a change. Pure; knows no other objects."""

from __future__ import annotations

from shoal.policy.admission.pod_resources import Amounts, Obj, parsed
from shoal.policy.admission.quota.evaluator import Evaluator
from shoal.policy.admission.quota.scopes import Scope, scopes_of
from shoal.units.quantity import ZERO


class TrackedQuota:
    """A quota, read. What it says is used counts only while its status belongs to its spec."""

    __slots__ = ("hard", "name", "namespace", "said", "scopes")

    def __init__(self, quota: Obj) -> None:
        metadata, spec, status = quota["metadata"], quota.get("spec") or {}, quota.get("status") or {}
        self.name: str = metadata["name"]
        self.namespace: str = metadata.get("namespace", "")
        self.hard: Amounts = parsed(spec.get("hard"))
        self.scopes: list[Scope] = scopes_of(quota)
        is_current = "used" in status and parsed(status.get("hard")) == self.hard
        self.said: Amounts | None = parsed(status["used"]) if is_current else None

    def counts(self, evaluator: Evaluator, obj: Obj) -> bool:
        """Whether the quota is about such an object."""
        return bool(evaluator.matching(self.hard)) and all(evaluator.in_scope(scope, obj) for scope in self.scopes)

    def usage(self, evaluator: Evaluator, obj: Obj | None) -> Amounts:
        """What an object uses of this quota; nothing when the quota is not about it."""
        if obj is None or not self.counts(evaluator, obj):
            return {}
        return {name: amount for name, amount in evaluator.usage(obj).items() if name in self.hard}

    def exceeded(self, delta: Amounts, used: Amounts) -> str:
        """The refusal of a change that would use more than there is; empty when there is enough."""
        names = [name for name, more in delta.items() if more > ZERO and used.get(name, ZERO) + more > self.hard[name]]
        if not names:
            return ""
        requested, taken, limited = (_listed(amounts, sorted(names)) for amounts in (delta, used, self.hard))
        return f"exceeded quota: {self.name}, requested: {requested}, used: {taken}, limited: {limited}"


def difference(before: Amounts, after: Amounts) -> Amounts:
    """What changes; what does not is left out."""
    names = {**before, **after}
    found = {name: after.get(name, ZERO) - before.get(name, ZERO) for name in names}
    return {name: amount for name, amount in found.items() if amount}


def changed(used: Amounts, delta: Amounts) -> Amounts:
    """Used never falls below nothing: a user may have written the status."""
    return {**used, **{name: max(used.get(name, ZERO) + amount, ZERO) for name, amount in delta.items()}}


def _listed(amounts: Amounts, names: list[str]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in names)
