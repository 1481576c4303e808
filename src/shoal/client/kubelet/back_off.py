"""Computes how long the kubelet waits before it restarts a container that crashed."""

from __future__ import annotations

_FIRST_S, _LONGEST_S = 10.0, 300.0


def back_off_s(crashes: int) -> float:
    """The first restart has no delay."""
    return 0.0 if crashes < 2 else min(_FIRST_S * float(1 << min(crashes - 2, 10)), _LONGEST_S)
