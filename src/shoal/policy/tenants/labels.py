"""Names, labels and annotations by which the objects of a team are known."""

from __future__ import annotations

from typing import Any, Final

from shoal.policy.advice import Obj
from shoal.policy.tenants.team import Team

TEAM_LABEL: Final = "shoal.dev/team"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "shoal-tenant"
BUDGET: Final = "shoal.dev/budget-per-month"
BUDGET_ENFORCED: Final = "shoal.dev/budget-enforced"
GRANT: Final = "shoal.dev/quota-grant"
LAST_GRANT: Final = "shoal.dev/last-quota-grant"
QUOTA: Final = "team-quota"
SELECTOR: Final = f"{MANAGED_BY}={MANAGER}"


def labels(team: str) -> dict[str, str]:
    return {TEAM_LABEL: team, MANAGED_BY: MANAGER}


def labelled(team: Team, version: str, kind: str, name: str, *, is_namespaced: bool = True, **more: Any) -> Obj:
    meta: Obj = {"name": name, "labels": labels(team.name)}
    if is_namespaced:
        meta["namespace"] = team.namespace
    return {"apiVersion": version, "kind": kind, "metadata": meta, **more}
