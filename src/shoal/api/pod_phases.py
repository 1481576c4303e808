"""The phases of a pod that has ended: all its containers have terminated and will not be restarted."""

from __future__ import annotations

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})
