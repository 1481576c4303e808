"""Answers admission and conversion reviews for the webhook, as plain objects. The functions are pure.

A review that cannot be handled gets a failure with a message; no content of a request raises an error.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import msgspec

from shoal.api.kueue.conversion import convert
from shoal.controllers.gatekeeping.held_kinds import HoldingRules
from shoal.controllers.gatekeeping.holding import held, with_rendezvous
from shoal.units.errors import UserError

Obj = dict[str, Any]
_POD = ("", "Pod")


def admitted(review: Obj, rules: HoldingRules | None, has_default: Callable[[str], bool]) -> Obj:
    """Without rules nothing is held, and only the variables of a rendezvous are added."""
    request = review["request"]
    before = request.get("object")
    answer: Obj = {"uid": request["uid"], "allowed": True}
    if isinstance(before, dict) and not request.get("subResource"):
        kind = (str(request["kind"].get("group", "")), str(request["kind"].get("kind", "")))
        namespace = str(request.get("namespace", ""))
        is_new = request.get("operation") == "CREATE"
        after = before
        if rules is not None and (is_new or kind != _POD):
            after = held(before, kind, rules, lambda: has_default(namespace), is_new=is_new)
        if is_new and kind == _POD:
            after = with_rendezvous(after)
        operations = _difference(before, after)
        if operations:
            patch = base64.b64encode(msgspec.json.encode(operations)).decode()
            answer |= {"patchType": "JSONPatch", "patch": patch}
    return {"apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "response": answer}


def _difference(before: Obj, after: Obj) -> list[Obj]:
    """The JSON patch of the two parts that may change; the answer is for exactly the reviewed object."""
    return [
        {"op": "replace" if part in before else "add", "path": f"/{part}", "value": after[part]}
        for part in ("metadata", "spec")
        if part in after and before.get(part) != after[part]
    ]


def converted(review: Obj) -> Obj:
    request = review["request"]
    answer: Obj = {"uid": request["uid"]}
    try:
        objects = [convert(one, str(request["desiredAPIVersion"])) for one in request.get("objects") or ()]
    except UserError as error:
        answer |= {"convertedObjects": [], "result": {"status": "Failure", "message": str(error)}}
    else:
        answer |= {"convertedObjects": objects, "result": {"status": "Success"}}
    return {"apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "response": answer}
