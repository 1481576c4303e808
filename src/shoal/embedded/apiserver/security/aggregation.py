"""ClusterRoles that gather the rules of others by label.

The rules are computed when they are needed, so they hold before they are written back; `outdated` finds the
roles whose stored rules should be written back, which in Kubernetes a controller does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from shoal.embedded.apiserver.label_selectors import selects

Obj = dict[str, Any]


def gathered_rules(role: Obj, roles: Iterable[Obj]) -> list[Obj]:
    """The rules a role with an aggregation rule should have: those of the roles it selects, by name, each once."""
    selectors = role["aggregationRule"].get("clusterRoleSelectors") or []
    own = role["metadata"]["name"]
    chosen: list[Obj] = []
    for other in sorted(roles, key=lambda one: str(one["metadata"]["name"])):
        labels = other["metadata"].get("labels") or {}
        if other["metadata"]["name"] == own or not any(selects(one, labels) for one in selectors):
            continue
        chosen += [rule for rule in other.get("rules") or [] if rule not in chosen]
    return chosen


def outdated(roles: Iterable[Obj]) -> Iterator[Obj]:
    """Copies of the roles whose stored rules are not what they gather; writing them may outdate further ones."""
    known = list(roles)
    for role in known:
        if not role.get("aggregationRule"):
            continue
        rules = gathered_rules(role, known)
        if rules != (role.get("rules") or []):
            yield {**role, "rules": rules}
