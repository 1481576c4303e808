"""Decodes patches and applies them to objects, with Kubernetes' checks.

A patch is read before the object: what is no patch at all is malformed (400). What it makes of the
object is read again as an object of the kind; what cannot be is the patch's fault, not the object's, and the answer is
`patch: Invalid value` (422), other than for a body that is an object.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.bodies.decode import json_value
from shoal.embedded.apiserver.bodies.duplicates import duplicate_fields, may_have_duplicates
from shoal.embedded.apiserver.bodies.yaml_text import NotYamlError, from_yaml
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.crds.pruning import conform_custom
from shoal.embedded.apiserver.field_errors import bad_value
from shoal.embedded.apiserver.patches.refusals import go_text
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest.incoming import still_at_home, typed
from shoal.embedded.apiserver.schema.decode import read, strict_words
from shoal.embedded.apiserver.schema.go_values import UndecodableError, json_kind

_OPERATION = frozenset(("op", "path", "from", "value"))
_GO_OPERATIONS = "[]handlers.jsonPatchOp"
_LEAD = "error decoding patch: "
"""Not said of strategic merges."""
_GO_OBJECT = "map[string]interface {}"


def read_patch(body: bytes, how: str, validation: str) -> tuple[Any, list[str]]:
    """The patch and what strict reading has against it."""
    if how == "apply":
        return _configuration(body)
    try:
        value = json_value(body)
    except ValueError as error:
        lead = "" if how == "strategic" else _LEAD
        raise status.bad_request(f"{lead}{error}") from None
    if validation == "Ignore":
        return value, []
    if how == "json":
        return value, _operation_problems(value)
    if not isinstance(value, dict) and value is not None:
        raise _of_wrong_type(value, _GO_OBJECT, "" if how == "strategic" else _LEAD)
    return value, duplicate_fields(body) if may_have_duplicates(body, value) else []


def _configuration(body: bytes) -> tuple[Any, list[str]]:
    try:
        return from_yaml(body)
    except NotYamlError as error:
        lead = "error converting YAML to JSON: " if str(error).startswith("yaml: ") else ""
        raise status.bad_request(f"error decoding YAML: {lead}{error}") from None


def _operation_problems(operations: Any) -> list[str]:
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise _of_wrong_type(operations, _GO_OPERATIONS)
    problems = []
    for index, operation in enumerate(operations):
        if operation is not None and not isinstance(operation, dict):
            raise _of_wrong_type(operation, "handlers.jsonPatchOp")
        unknown = sorted((operation or {}).keys() - _OPERATION)
        problems += [f'json patch unknown field "[{index}].{key}"' for key in unknown]
    return problems


def _of_wrong_type(value: Any, wanted: str, lead: str = _LEAD) -> status.ApiError:
    return status.bad_request(f"{lead}json: cannot unmarshal {json_kind(value)} into Go value of type {wanted}")


def as_kind(call: Call, new: Any, how: str, patch: Any, problems: list[str]) -> Obj:
    """The patched object as one of its kind; unknown fields are gone, and refused or warned of as asked."""
    resource = call.resource
    is_checked = call.validation == "Strict"
    shown = _shown(new, how, patch) if is_checked else ""
    try:
        obj = typed(call, new)
        found = conform_custom(obj, resource.schema) if resource.is_custom else read(obj, resource.schema)
    except UndecodableError as error:
        words = unrestorable(error) if how == "strategic" else error.text()
        raise _refused(shown or _shown(new, how, patch), words) from None
    except status.ApiError as error:
        raise _refused(shown or _shown(new, how, patch), error.message) from None
    reported = [*problems, *found]
    if reported and is_checked:
        raise _refused(shown, strict_words(reported))
    if reported and call.validation == "Warn":
        call.warnings.extend(reported)
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    still_at_home(call, obj)
    return obj


_GO_KINDS = {"number": "int64", "object": "map", "array": "slice", "string": "string", "bool": "bool"}


def unrestorable(error: UndecodableError) -> str:
    """What a strategic merge says of a wrong type: its result is no text when it is read, so the words differ."""
    wanted = error.go_type
    if not wanted:
        return error.text()
    sent = error.words.removeprefix("json: cannot unmarshal ").partition(" ")[0]
    kind = _GO_KINDS.get(sent, sent)
    if wanted.startswith("[]"):
        return f"cannot restore slice from {kind}"
    if wanted.startswith("map["):
        return f"cannot restore map from {kind}"
    if "." in wanted:
        return f"cannot restore struct from: {kind}"
    if sent == "number" and wanted == "string":
        return "cannot convert int64 to string"
    return f"unrecognized type: {wanted}"


def _shown(new: Obj, how: str, patch: Any) -> str:
    return go_text(patch) if how == "strategic" else msgspec.json.encode(new, order="sorted").decode()


def _refused(shown: str, words: str) -> status.ApiError:
    return status.invalid("", "", "", [bad_value("patch", shown, words)])
