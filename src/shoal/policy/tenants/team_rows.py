"""The teams of a cluster as rows: their namespace, quota, grant, budget and open requests."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.policy.advice import Obj
from shoal.policy.fields import dig, string_keys
from shoal.policy.tenants.grants import REQUEST_LABEL, grant_of
from shoal.policy.tenants.labels import BUDGET, BUDGET_ENFORCED, QUOTA, TEAM_LABEL

_DEVICES = "requests.nvidia.com/"


class TeamRow(msgspec.Struct, frozen=True, rename="camel"):
    team: str
    namespace: str
    devices: dict[str, str]
    """Used and allowed, by device: `2/16`."""
    budget: str
    budget_enforced: str
    """`spent` or `forecast`; empty: new work does not wait for the budget."""
    granted_until: str
    """Empty: there is no grant; `always`: it has no end."""
    granted_by: str
    open_requests: int


def team_rows(namespaces: Iterable[Obj], quotas: Iterable[Obj], requests: Iterable[Obj]) -> list[TeamRow]:
    by_namespace = {
        str(dig(quota, "metadata", "namespace")): quota for quota in quotas if dig(quota, "metadata", "name") == QUOTA
    }
    pending = [
        str(dig(one, "metadata", "namespace"))
        for one in requests
        if dig(one, "metadata", "labels", REQUEST_LABEL) == "pending"
    ]
    rows = [_row(namespace, by_namespace, pending) for namespace in namespaces]
    return sorted(rows, key=lambda row: (row.team, row.namespace))


def _row(namespace: Obj, quotas: dict[str, Obj], pending: list[str]) -> TeamRow:
    name = str(dig(namespace, "metadata", "name"))
    quota = quotas.get(name, {})
    hard, used = (string_keys(dig(quota, "status", field)) for field in ("hard", "used"))
    hard = string_keys(dig(quota, "spec", "hard")) | hard
    grant = grant_of(quota)
    return TeamRow(
        team=str(dig(namespace, "metadata", "labels", TEAM_LABEL) or ""),
        namespace=name,
        devices={
            item.removeprefix("requests."): f"{used.get(item, 0)}/{amount}"
            for item, amount in hard.items()
            if item.startswith(_DEVICES) and (str(amount) != "0" or str(used.get(item, "0")) != "0")
        },
        budget=str(dig(namespace, "metadata", "annotations", BUDGET) or ""),
        budget_enforced=str(dig(namespace, "metadata", "annotations", BUDGET_ENFORCED) or ""),
        granted_until="" if grant is None else grant.until or "always",
        granted_by="" if grant is None else grant.granted_by,
        open_requests=pending.count(name),
    )
