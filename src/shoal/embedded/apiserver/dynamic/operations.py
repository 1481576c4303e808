"""JSON patches of webhooks and policies, one operation at a time, so that a refusal names the one that failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.patches.json_patch import json_patch

Obj = dict[str, Any]


class PatchFault(Exception):  # noqa: N818 - the caller answers with it
    """A patch that does not apply."""


class UnmetTest(PatchFault):
    """An operation `test` found something else."""


def applied(obj: Obj, operations: Any) -> Any:
    """The patched document; the object stays as it is."""
    if not isinstance(operations, list):
        raise PatchFault("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    document: Any = obj
    for operation in operations:
        try:
            document = json_patch(document, [operation])
        except status.ApiError as error:
            raise _fault(operation, error) from None
    return document


def _fault(operation: Any, error: status.ApiError) -> PatchFault:
    if not isinstance(operation, Mapping):
        return PatchFault(error.message)
    verb, path = operation.get("op"), operation.get("path")
    if verb == "test":
        return UnmetTest(f"testing value {path} failed: test failed")
    if verb in ("add", "replace"):
        return PatchFault(f"{verb} operation does not apply: doc is missing path: {path}: missing value")
    if verb == "remove":
        key = str(path).rpartition("/")[2]
        return PatchFault(f"error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value")
    if verb in ("move", "copy"):
        return PatchFault(f"error in {verb} for path: '{operation.get('from')}': missing value")
    return PatchFault(f"Unexpected kind: {verb}")
