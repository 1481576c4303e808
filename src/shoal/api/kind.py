"""Describes a kind: its versions, its type, its rules, and how documents of older versions are converted.

Apart from the list in `kinds.py`, so that an ecosystem with many kinds can keep its own lines beside its types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.api.wire import ApiStruct
from shoal.units.errors import Where


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    api_versions: tuple[str, ...]
    type: type[ApiStruct]
    check: Callable[[Any, Where], None]
    is_namespaced: bool = True
    reads: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """The plain object that the type is read from, where the document itself is not. The document stays as it is."""
