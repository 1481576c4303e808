"""JSON merge patch (RFC 7386): maps are merged, null takes a key away, everything else replaces."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.patches.copying import copied
from shoal.embedded.apiserver.schema.go_values import json_kind
from shoal.embedded.apiserver.status import bad_request

Obj = dict[str, Any]


def merge_patch(obj: Obj, patch: Any) -> Obj:
    """The patched object, which shares with the object what is the same in both; neither argument is changed."""
    if not isinstance(patch, dict):
        if patch is None:
            return obj
        kind = json_kind(patch)
        words = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: {words}")
    merged: Obj = merge_values(obj, patch)
    return merged


def merge_values(target: Any, patch: Any) -> Any:
    """The function MergePatch of the RFC, for values of any kind."""
    if not isinstance(patch, dict):
        return copied(patch)
    base = target if isinstance(target, dict) else {}
    merged = {key: value for key, value in base.items() if key not in patch}
    for key, value in patch.items():
        if value is not None:
            merged[key] = merge_values(base.get(key), value)
    return merged
