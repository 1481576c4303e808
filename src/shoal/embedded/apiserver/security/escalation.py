"""Prevents privilege escalation: users cannot grant permissions that they do not have.

A user with the verb `escalate` on a role, or `bind` on the role that a binding names, may do it all the same; and so
may superusers. A change is checked as a new object is, unless only garbage collection could want it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.embedded.apiserver.calls import Actor, AdmissionAttributes
from shoal.embedded.apiserver.field_errors import shown
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.authorize import Authorizer
from shoal.embedded.apiserver.security.rbac import GROUP, SUPERUSERS
from shoal.embedded.apiserver.security.rules import FULL_AUTHORITY, PolicyRule, missing, quoted, read_rules
from shoal.embedded.apiserver.status import forbidden

Obj = dict[str, Any]
_ROLES = frozenset({"roles", "clusterroles"})
_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})
_OF_COLLECTION = ("ownerReferences", "finalizers", "selfLink", "managedFields")
_AGGREGATION = "must have cluster-admin privileges to use the aggregationRule"


class EscalationCheck:
    """To be asked about every create and update of an RBAC object once its form is known to be good."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def validate(self, admission: AdmissionAttributes) -> None:
        resource = admission.call.resource
        if resource.group != GROUP or admission.obj is None or admission.operation not in ("CREATE", "UPDATE"):
            return
        if SUPERUSERS in admission.call.actor.groups:
            return
        if resource.plural in _ROLES:
            self._check_role(admission, admission.obj)
        elif resource.plural in _BINDINGS:
            self._check_binding(admission, admission.obj)

    def _check_role(self, admission: AdmissionAttributes, new: Obj) -> None:
        old, resource = admission.old, admission.call.resource
        if _is_for_collection_only(new, old):
            return
        # Of an object that is posted the path says no name, so that a right to one name is none to create it.
        name = admission.call.name
        asked = RequestInfo("escalate", GROUP, "*", resource.plural, "", admission.namespace, name)
        if self._authorizer.allows(admission.call.actor, asked).allowed:
            return
        self._confirm(admission, read_rules(new.get("rules")))
        if _gathers(new) or _gathers(old or {}):
            held = self._authorizer.held(admission.call.actor, admission.namespace)
            if missing(held.rules, FULL_AUTHORITY):
                raise forbidden(resource.plural, GROUP, admission.name, _AGGREGATION)

    def _check_binding(self, admission: AdmissionAttributes, new: Obj) -> None:
        reference = new["roleRef"]
        if _is_for_collection_only(new, admission.old):
            return
        plural = f"{reference['kind'].lower()}s"
        asked = RequestInfo("bind", GROUP, "v1", plural, "", admission.namespace, reference["name"])
        if not self._authorizer.allows(admission.call.actor, asked).allowed:
            self._confirm(admission, self._authorizer.rules_of(reference, admission.namespace))

    def _confirm(self, admission: AdmissionAttributes, wanted: Iterable[PolicyRule]) -> None:
        actor = admission.call.actor
        held = self._authorizer.held(actor, admission.namespace)
        lacking = missing(held.rules, wanted)
        if lacking:
            words = refusal_words(actor, lacking, held.faults)
            raise forbidden(admission.call.resource.plural, GROUP, admission.name, words)


def _gathers(role: Obj) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_for_collection_only(new: Obj, old: Obj | None) -> bool:
    """Whether nothing differs but what garbage collection writes. A label is not such a change: by its labels a role
    is gathered into others."""
    return old is not None and _beside_collection(new) == _beside_collection(old)


def _beside_collection(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _OF_COLLECTION}
    return {**{key: value for key, value in obj.items() if value}, "metadata": metadata}


def refusal_words(actor: Actor, lacking: Iterable[PolicyRule], faults: tuple[str, ...] = ()) -> str:
    listed = "\n".join(sorted({rule.text() for rule in lacking}))
    who = f"user {shown(actor.name)} (groups={quoted(actor.groups)})"
    words = f"{who} is attempting to grant RBAC permissions not currently held:\n{listed}"
    return f"{words}; resolution errors: [{' '.join(faults)}]" if faults else words
