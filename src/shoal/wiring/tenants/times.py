"""Times as the API server writes them."""

from __future__ import annotations

from datetime import UTC, datetime

from shoal.client.clock import Clock

_FORM = "%Y-%m-%dT%H:%M:%SZ"


def timestamp(clock: Clock, later_s: float = 0.0) -> str:
    return datetime.fromtimestamp(clock.seconds() + later_s, UTC).strftime(_FORM)
