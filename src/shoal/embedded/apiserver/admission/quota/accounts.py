"""The quotas of a namespace while writes are charged one after another, before any of it is stored.

What the first write used is taken when the second is judged. Nothing outside changes until the charges are committed,
together with the writes they are for; if that fails, they are forgotten together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shoal.embedded.apiserver.admission.quota.usage_arithmetic import Book, QuotaCharge
from shoal.policy.admission.pod_resources import Amounts
from shoal.policy.admission.quota.tracked_quota import changed


class Accounts:
    """Read once; valid while the caller holds the quotas' locks."""

    __slots__ = ("_count", "_taken", "books")

    def __init__(self, books: list[Book], count: Callable[[Book], Amounts]) -> None:
        self.books = books
        self._count = count
        self._taken: list[Book] = []

    @property
    def are_counted(self) -> bool:
        """Whether every quota says what is used of it; if not, using one counts what is visible."""
        return all(book.said is not None for book in self.books)

    def used(self, book: Book) -> Amounts:
        if book.said is None:
            book.said = self._count(book)
        return book.said

    def take(self, deltas: Iterable[tuple[Book, Amounts]]) -> None:
        for book, delta in deltas:
            book.said = changed(self.used(book), delta)
            if book not in self._taken:
                self._taken.append(book)

    def charges(self) -> list[QuotaCharge]:
        """What has been taken so far comes to."""
        return [book.charge(self.used(book)) for book in self._taken]
