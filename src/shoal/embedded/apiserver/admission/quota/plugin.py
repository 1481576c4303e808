"""Tracks the quota usage of a namespace: charged by writes, released by deletions, recounted when unknown.

Writes are charged before their commit, under the locks of the namespace's quotas, and the quotas' new status is part of
the same commit: the usage in a quota's status is always true, and no quota is exceeded. A quota
whose status does not belong to its spec yet (just made, or just changed) is counted on the spot, from what is visible:
writes that began before the quota was visible are completed first.

Rejected: a controller that counts behind the writes, as Kubernetes has one. It would be right later, and a test or a
scheduler that reads at once would get a wrong value.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.embedded.apiserver.admission.plugin import forbid
from shoal.embedded.apiserver.admission.quota.accounts import Accounts
from shoal.embedded.apiserver.admission.quota.others import DeviceClaimEvaluator, ServiceEvaluator, VolumeClaimEvaluator
from shoal.embedded.apiserver.admission.quota.usage_arithmetic import Book, QuotaCharge
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Home, Ref
from shoal.policy.admission.pod_resources import Amounts, add
from shoal.policy.admission.quota.evaluator import Evaluator
from shoal.policy.admission.quota.pods import PodEvaluator
from shoal.policy.admission.quota.tracked_quota import difference
from shoal.units.quantity import ZERO


class Quota:
    """`gone` says that the write removes the object, whatever its operation is called: the last finalizer, say."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        known: tuple[Evaluator, ...] = (
            PodEvaluator(),
            ServiceEvaluator(),
            VolumeClaimEvaluator(),
            DeviceClaimEvaluator(),
        )
        self._evaluators: dict[tuple[str, str], Evaluator] = {one.home: one for one in known}

    def refs(self, admission: AdmissionAttributes, *, gone: bool = False) -> list[Ref]:
        """The quotas that such a write may change; nothing where it can change none."""
        namespace = admission.namespace
        if not namespace or not (gone or self._can_change(admission)):
            return []
        return [book.ref for book in self._books(namespace)]

    def charges(self, admission: AdmissionAttributes, *, gone: bool = False) -> list[QuotaCharge]:
        """The quotas that one write changes; raises when it is more than one of them has left."""
        accounts = self.accounts(admission.namespace)
        self.charge(accounts, admission, gone=gone)
        return accounts.charges()

    def accounts(self, namespace: str) -> Accounts:
        """To charge several writes that are committed together."""
        return Accounts(self._books(namespace) if namespace else [], self._count)

    def charge(self, accounts: Accounts, admission: AdmissionAttributes, *, gone: bool = False) -> None:
        """All that a write costs, or nothing and ApiError when it is more than one of the quotas has left."""
        evaluator = self.evaluator(admission.call.resource.home)
        if gone:
            accounts.take(_deltas(accounts, evaluator, admission.old or admission.obj, None))
            return
        if admission.obj is None or not self._can_change(admission):
            return
        may_refuse = evaluator.handles(admission.operation, admission.call.subresource)
        for book in accounts.books if may_refuse else ():
            self._require(admission, book, evaluator, admission.obj)
        before = admission.old if admission.operation == "UPDATE" else None
        deltas = _deltas(accounts, evaluator, before, admission.obj)
        # A status only says what has happened already. What asks for more in passing is refused all the same.
        is_asking = may_refuse and admission.call.subresource != "status"
        is_asking = is_asking or (before is not None and evaluator.asks_for_more(before, admission.obj))
        for book, delta in deltas if is_asking else ():
            fault = book.exceeded(delta, accounts.used(book))
            if fault:
                raise forbid(admission, fault)
        accounts.take(deltas)

    def recount(self, namespace: str) -> list[QuotaCharge]:
        """The quotas of a namespace whose status is not what counting gives."""
        found = ((book, self._count(book)) for book in self._books(namespace))
        return [book.charge(used) for book, used in found if book.said != used]

    def counted(self, quota: Obj) -> QuotaCharge:
        """A quota, stored already or about to be, counted from all objects of its namespace."""
        book = Book(quota)
        return book.charge(self._count(book))

    def evaluator(self, home: Home) -> Evaluator:
        found = self._evaluators.get(home)
        if found is None:
            found = self._evaluators[home] = Evaluator(home)
        return found

    def _can_change(self, admission: AdmissionAttributes) -> bool:
        evaluator = self.evaluator(admission.call.resource.home)
        if evaluator.handles(admission.operation, admission.call.subresource):
            return True
        old, new = admission.old, admission.obj
        return (
            admission.operation == "UPDATE" and bool(old and new) and evaluator.uses_other_amounts(old or {}, new or {})
        )

    def _require(self, admission: AdmissionAttributes, book: Book, evaluator: Evaluator, obj: Obj) -> None:
        fault = evaluator.missing(evaluator.matching(book.hard), obj) if book.counts(evaluator, obj) else ""
        if fault:
            raise forbid(admission, f"failed quota: {book.name}: {fault}")

    def _count(self, book: Book) -> Amounts:
        used: Amounts = {}
        for evaluator in self._counting(book.hard):
            used |= dict.fromkeys(evaluator.matching(book.hard), ZERO)
            for obj in self._reader.all(*evaluator.home, book.namespace):
                add(used, book.usage(evaluator, obj))
        return used

    def _counting(self, hard: Iterable[str]) -> list[Evaluator]:
        """The kinds that the names of a quota ask for."""
        homes = dict.fromkeys(self._evaluators)
        for name in hard:
            plural, _, group = name.removeprefix("count/").partition(".")
            if plural and "/" not in group:
                homes.setdefault(Home(group, plural))
        found = (self._evaluators.get(home) or Evaluator(home) for home in homes)
        return [one for one in found if one.matching(hard)]

    def _books(self, namespace: str) -> list[Book]:
        found = [Book(quota) for quota in self._reader.all("", "resourcequotas", namespace)]
        return sorted(found, key=lambda book: book.name) if len(found) > 1 else found


def _deltas(
    accounts: Accounts, evaluator: Evaluator, before: Obj | None, after: Obj | None
) -> list[tuple[Book, Amounts]]:
    """The quotas that a change of an object concerns, and by how much."""
    found = ((book, difference(book.usage(evaluator, before), book.usage(evaluator, after))) for book in accounts.books)
    return [(book, delta) for book, delta in found if delta]
