"""Whether Volcano itself is away, so that its objects are ours to look after."""

from __future__ import annotations

from collections.abc import Callable

IsAway = Callable[[], bool]
