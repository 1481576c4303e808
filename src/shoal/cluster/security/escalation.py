"""Nobody gives what they do not have: the check on writing roles and bindings.

Whoever holds the verb `escalate` on a role, or `bind` on the role a binding names, may do it all the same; and so may
superusers, who hold everything. Changes that grant nothing new are not checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.cluster.calls import Actor, Admission, Attributes
from shoal.cluster.field_errors import shown
from shoal.cluster.security.authorize import Authorizer
from shoal.cluster.security.rbac import GROUP, SUPERUSERS
from shoal.cluster.security.rules import FULL_AUTHORITY, Rule, missing, quoted, read_rules
from shoal.cluster.status import forbidden

Obj = dict[str, Any]
_ROLES = frozenset({"roles", "clusterroles"})
_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})
_AGGREGATION = "must have cluster-admin privileges to use the aggregationRule"


class EscalationCheck:
    """To be asked about every create and update of an RBAC object once its form is known to be good."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def validate(self, admission: Admission) -> None:
        resource = admission.call.resource
        if resource.group != GROUP or admission.obj is None or admission.operation not in ("CREATE", "UPDATE"):
            return
        if SUPERUSERS in admission.call.actor.groups:
            return
        if resource.plural in _ROLES:
            self._check_role(admission, admission.obj)
        elif resource.plural in _BINDINGS:
            self._check_binding(admission, admission.obj)

    def _check_role(self, admission: Admission, new: Obj) -> None:
        old, resource = admission.old, admission.call.resource
        grants_nothing_new = (
            old is not None
            and (new.get("rules") or []) == (old.get("rules") or [])
            and new.get("aggregationRule") == old.get("aggregationRule")
        )
        asked = Attributes("escalate", GROUP, "v1", resource.plural, "", admission.namespace, admission.name)
        if grants_nothing_new or self._authorizer.allows(admission.call.actor, asked).allowed:
            return
        self._confirm(admission, read_rules(new.get("rules")))
        if new.get("aggregationRule"):
            held = self._authorizer.held(admission.call.actor, admission.namespace)
            if missing(held.rules, FULL_AUTHORITY):
                raise forbidden(resource.plural, GROUP, admission.name, _AGGREGATION)

    def _check_binding(self, admission: Admission, new: Obj) -> None:
        old, reference = admission.old, new["roleRef"]
        if old is not None and all((new.get(key) or []) == (old.get(key) or []) for key in ("subjects", "roleRef")):
            return
        plural = f"{reference['kind'].lower()}s"
        asked = Attributes("bind", GROUP, "v1", plural, "", admission.namespace, reference["name"])
        if not self._authorizer.allows(admission.call.actor, asked).allowed:
            self._confirm(admission, self._authorizer.rules_of(reference, admission.namespace))

    def _confirm(self, admission: Admission, wanted: Iterable[Rule]) -> None:
        actor = admission.call.actor
        held = self._authorizer.held(actor, admission.namespace)
        lacking = missing(held.rules, wanted)
        if lacking:
            words = refusal_words(actor, lacking, held.faults)
            raise forbidden(admission.call.resource.plural, GROUP, admission.name, words)


def refusal_words(actor: Actor, lacking: Iterable[Rule], faults: tuple[str, ...] = ()) -> str:
    listed = "\n".join(sorted({rule.text() for rule in lacking}))
    who = f"user {shown(actor.name)} (groups={quoted(actor.groups)})"
    words = f"{who} is attempting to grant RBAC permissions not currently held:\n{listed}"
    return f"{words}; resolution errors: [{' '.join(faults)}]" if faults else words
