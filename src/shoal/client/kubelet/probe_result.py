"""Names what a kubelet counts of its probes."""

from __future__ import annotations

from typing import Literal, NamedTuple


class ProbeResult(NamedTuple):
    container: str
    kind: str
    """`Liveness`, `Readiness` or `Startup`."""
    result: Literal["successful", "failed"]
