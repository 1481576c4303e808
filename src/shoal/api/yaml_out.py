"""Writes JSON values as YAML that Kubernetes' reader takes to mean the same.

PyYAML leaves `y`, `n`, `1_000` and `1e3` unquoted, which go-yaml reads as truth values and numbers. Every text that
`yaml_scalars.plain` would not read as itself is quoted here.
"""

from __future__ import annotations

from typing import Any

import yaml

from shoal.api.yaml_scalars import ScalarError, plain

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The one in C is ten times as quick."""


class _Dumper(_Base):  # type: ignore[misc]
    def ignore_aliases(self, _data: Any) -> bool:
        """Equal values are written again: readers of Kubernetes' objects do not expect aliases."""
        return True


def _text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if _is_itself(text) else "'")


def _is_itself(text: str) -> bool:
    try:
        return plain(text) == text and isinstance(plain(text), str)
    except ScalarError:
        return False


_Dumper.add_representer(str, _text)


def to_yaml(value: Any, *, sort_keys: bool = False, are_leaves_inline: bool = False) -> str:
    """`are_leaves_inline`: lists and objects without lists and objects in them take one line."""
    style = None if are_leaves_inline else False
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=sort_keys, allow_unicode=True, default_flow_style=style)
    return text
