"""Writes all options with their defaults as a values file, each with its purpose: `shoal install values`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.api.yaml_out import to_yaml
from shoal.install.values.known import BY_PATH, defaults

_INDENT = "  "


def documented_values() -> str:
    """A file that changes nothing when it is given back."""
    return "".join(f"{line}\n" for line in _lines(defaults(), "", 0))


def _lines(tree: dict[str, Any], before: str, depth: int) -> Iterator[str]:
    for name, value in tree.items():
        path = f"{before}.{name}" if before else name
        option, space = BY_PATH.get(path), _INDENT * depth
        if option is None:
            yield f"{space}{name}:"
            yield from _lines(value, path, depth + 1)
            continue
        if option.about:
            yield f"{space}# {option.about}"
        for line in to_yaml({name: value}).splitlines():
            yield f"{space}{line}"
