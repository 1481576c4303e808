"""Answers an AdmissionReview by the admission rules: warnings, and a refusal where a rule is enforced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from shoal.policy.admission_rules.checks import AdmissionFinding, findings
from shoal.policy.admission_rules.modes import ENFORCE, RuleModes
from shoal.policy.advice import Obj, RuleContext
from shoal.policy.object_set import is_advised
from shoal.policy.pod_counts import asks_for_more
from shoal.units.errors import one_line

_ABOUT_AMOUNTS: Final = ("OverBudget", "OverQuota")
"""These refuse no change that asks for nothing more: scaling down and suspending are what gives devices back."""
_MOST_TEXTS: Final = 10
_LONGEST: Final = 250
"""API servers cut a longer warning off."""


def reviewed(review: Obj, context: RuleContext, modes: RuleModes, *, has_policies: bool) -> Obj:
    """The answer. Objects that another object created are admitted: the rules apply to the object that a user wrote."""
    request = review["request"]
    answer: dict[str, Any] = {"uid": request["uid"], "allowed": True}
    obj, before = request.get("object"), request.get("oldObject")
    if isinstance(obj, dict) and is_advised(obj) and _is_new(obj, before):
        found = list(findings(_named(obj, request), context, modes, has_policies=has_policies))
        if isinstance(before, dict) and not asks_for_more(obj, before):
            found = [one for one in found if one.rule not in _ABOUT_AMOUNTS]
        refused = [one for one in found if one.mode == ENFORCE]
        warned = [one for one in found if one.mode != ENFORCE]
        if refused:
            message = "; ".join(_texts(refused))
            answer |= {"allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": message}}
        if warned:
            answer["warnings"] = [_cut(text) for text in _texts(warned)]
    return {"apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "response": answer}


def _is_new(obj: Obj, before: Any) -> bool:
    """Whether the object is created, or its spec changes."""
    return not isinstance(before, dict) or before.get("spec") != obj.get("spec")


def _named(obj: Obj, request: Obj) -> Obj:
    """With the namespace of the request: an object may be written without one."""
    meta = obj.get("metadata")
    namespace = request.get("namespace")
    return {**obj, "metadata": {**meta, "namespace": namespace}} if isinstance(meta, dict) and namespace else obj


def _texts(found: Sequence[AdmissionFinding]) -> list[str]:
    """Each text once; of an object with very many faults the first ones."""
    texts = [one_line(text) for text in dict.fromkeys(one.text for one in found)]
    left = len(texts) - _MOST_TEXTS
    return [*texts[:_MOST_TEXTS], f"and {left} more: shoal lint shows all"] if left > 0 else texts


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
