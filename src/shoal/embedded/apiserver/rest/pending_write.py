"""A write that waits for the quotas of its namespace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.state.outcome import Outcome
from shoal.embedded.apiserver.state.record import Record, Write


class PendingWrite:
    """The writes of one request that holds the object's lock, and their outcome."""

    __slots__ = ("admission", "check", "gone", "outcome", "records", "writes")

    def __init__(
        self, admission: AdmissionAttributes, writes: Sequence[Write], check: Callable[[], None] | None, *, gone: bool
    ) -> None:
        self.admission = admission
        self.writes = writes
        self.check = check
        self.gone = gone
        self.records: list[Record] = []
        self.outcome = Outcome()
