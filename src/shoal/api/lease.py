"""The Lease objects of leader election and of node heartbeats."""

from __future__ import annotations

from datetime import datetime

import msgspec

from shoal.api.wire import ApiStruct


class LeaseSpec(ApiStruct, frozen=True):
    """Times are text: a holder recognizes its own renewals by their text."""

    holder_identity: str | None = None
    lease_duration_seconds: float | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None

    def renewed_at(self) -> datetime | None:
        """None if it is absent. Raises msgspec.ValidationError if it is not a time."""
        return None if self.renew_time is None else msgspec.convert(self.renew_time, datetime)


class Lease(ApiStruct, frozen=True):
    spec: LeaseSpec | None = None

    def content(self) -> LeaseSpec:
        """The spec; that of a Lease without holder if it is absent."""
        return self.spec or LeaseSpec()
