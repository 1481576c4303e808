"""The kind `Team`: what a team may use, its members, and the traffic of its pods. It exists in files only.

A file needs a name; everything else has a default that isolates the team.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from shoal.api.decode import convert
from shoal.api.device_names import dns_label_fault
from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct
from shoal.policy.tenants.priorities import PRIORITIES
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.near_texts import near_texts
from shoal.units.quantity import Quantity

TEAM_VERSION, TEAM_KIND = "shoal.dev/v1alpha1", "Team"
GPU = "nvidia.com/gpu"
_HERE = Where()
Amount = Annotated[int, Meta(ge=0, le=1_000_000)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Role = Literal["admin", "developer", "viewer"]
ROLES: tuple[Role, ...] = ("admin", "developer", "viewer")
USER_PREFIX, ACCOUNT_PREFIX = "user:", "serviceaccount:"


class TeamQuota(ApiStruct, frozen=True, forbid_unknown_fields=True):
    gpus: Amount = 0
    gpus_per_pod: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    resources: dict[str, Amount] = field(default_factory=dict)
    """Other devices by their names: `nvidia.com/mig-1g.10gb: 7`."""
    cpu: Quantity | None = None
    memory: Quantity | None = None
    storage: Quantity | None = None
    claims: Amount | None = None
    """PersistentVolumeClaims."""
    pods: Amount | None = None

    def devices(self) -> dict[str, int]:
        return {GPU: self.gpus, **self.resources}


class TeamMembers(ApiStruct, frozen=True, forbid_unknown_fields=True):
    """Groups; `user:NAME` is a user, `serviceaccount:NAMESPACE/NAME` an account."""

    admins: tuple[str, ...] = ()
    developers: tuple[str, ...] = ()
    viewers: tuple[str, ...] = ()

    def of(self, role: Role) -> tuple[str, ...]:
        match role:
            case "admin":
                return self.admins
            case "developer":
                return self.developers
            case "viewer":
                return self.viewers


class TeamEgress(ApiStruct, frozen=True, forbid_unknown_fields=True):
    cidr: str
    ports: tuple[Port, ...] = ()
    """Of TCP; none means all."""


class TeamNetwork(ApiStruct, frozen=True, forbid_unknown_fields=True):
    scrapers: tuple[str, ...] = ("monitoring",)
    """Namespaces that may read metrics of the team's pods."""
    allow_from: tuple[str, ...] = ()
    """Namespaces that may open any connection, such as that of a gateway."""
    internet: bool = True
    """HTTPS to addresses outside of the cluster."""
    egress: tuple[TeamEgress, ...] = ()
    webhook_ports: tuple[Port, ...] = ()
    """Ports on which pods of the team serve webhooks. The API server is no pod, so no selector can allow it."""


class TeamQueue(ApiStruct, frozen=True, forbid_unknown_fields=True):
    cohort: str = "shared"
    flavor: str = "default-flavor"
    borrow: Amount | None = None
    """GPUs that the team may use beyond its quota while others leave them idle; by default all of the cohort."""
    weight: Annotated[float, Meta(ge=0)] | None = None


class TeamDefaults(ApiStruct, frozen=True, forbid_unknown_fields=True):
    """What a container requests that does not say. GPUs have no default."""

    cpu: Quantity = Quantity.parse("1")
    memory: Quantity = Quantity.parse("4Gi")


class TeamSpec(ApiStruct, frozen=True, forbid_unknown_fields=True):
    namespace: str = ""
    """By default the name of the team."""
    quota: TeamQuota = field(default_factory=TeamQuota)
    defaults: TeamDefaults = field(default_factory=TeamDefaults)
    members: TeamMembers = TeamMembers()
    network: TeamNetwork = TeamNetwork()
    queue: TeamQueue = TeamQueue()
    priorities: tuple[str, ...] = ("research", "batch")
    """The priority classes that the team may use."""
    pod_security: Literal["restricted", "baseline"] = "restricted"
    budget_per_month: Decimal | None = None
    budget_enforced: Literal["", "spent", "forecast"] = ""
    """Whether new work of the team waits once the budget is spent, or is expected to be exceeded."""


class Team(ApiStruct, frozen=True, forbid_unknown_fields=True):
    api_version: str = TEAM_VERSION
    kind: str = TEAM_KIND
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: TeamSpec = field(default_factory=TeamSpec)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.spec.namespace or self.name


def read_team(raw: dict[str, Any], where: Where = _HERE) -> Team:
    """Raises UserError with the field that is wrong."""
    if raw.get("kind") != TEAM_KIND or raw.get("apiVersion") != TEAM_VERSION:
        what = f"is no {TEAM_KIND}: {raw.get('apiVersion')} {raw.get('kind')}"
        raise UserError(what, where=where, fix=f"write apiVersion: {TEAM_VERSION} and kind: {TEAM_KIND}")
    team = convert(raw, Team, where)
    check_team(team, where)
    return team


def check_team(team: Team, where: Where = _HERE) -> None:
    """Raises UserError."""
    for path, name in (("metadata.name", team.name), ("spec.namespace", team.namespace)):
        if fault := dns_label_fault(name):
            raise UserError(f"{excerpt(name)}: {fault}", where=where.below(path))
    if team.namespace == "default" or team.namespace.startswith("kube-"):
        what = f"the namespace {team.namespace} belongs to the cluster"
        raise UserError(what, where=where.below("spec.namespace"), fix="use a namespace of the team's own")
    for at, name in enumerate(team.spec.priorities):
        if name not in PRIORITIES:
            near = near_texts(name, list(PRIORITIES))
            fix = f"did you mean {near[0]}?" if near else f"use {', '.join(PRIORITIES)}"
            raise UserError(f"{excerpt(name)} is no priority", where=where.below(f"spec.priorities[{at}]"), fix=fix)
    budget = team.spec.budget_per_month
    if budget is not None and not (budget.is_finite() and budget >= 0):
        raise UserError(f"{budget} is no amount of money", where=where.below("spec.budgetPerMonth"))
    if budget is None and team.spec.budget_enforced:
        fix = "write spec.budgetPerMonth"
        raise UserError("there is no budget to enforce", where=where.below("spec.budgetEnforced"), fix=fix)
    for name in team.spec.quota.resources:
        _check_resource(name, where.below("spec.quota.resources").key(name))
    for at, egress in enumerate(team.spec.network.egress):
        if not _is_cidr(egress.cidr):
            here = where.below(f"spec.network.egress[{at}].cidr")
            raise UserError(f"{excerpt(egress.cidr)} is no range of addresses", where=here, fix="as in 10.1.0.0/16")
    for role, subject in subjects(team):
        if not subject.removeprefix(USER_PREFIX) or (
            subject.startswith(ACCOUNT_PREFIX) and not all(subject.removeprefix(ACCOUNT_PREFIX).partition("/"))
        ):
            fix = "write a group, user:NAME or serviceaccount:NAMESPACE/NAME"
            raise UserError(f"{excerpt(subject)} names no member", where=where.below(f"spec.members.{role}s"), fix=fix)


def subjects(team: Team) -> Iterator[tuple[Role, str]]:
    for role in ROLES:
        for subject in team.spec.members.of(role):
            yield role, subject


def _check_resource(name: str, where: Where) -> None:
    if name == GPU:
        raise UserError("is the field gpus", where=where, fix="write quota.gpus")
    if name.startswith(("limits.", "requests.")):
        raise UserError(
            "is an item of a quota", where=where, fix=f"write {name.partition('.')[2]}; limits of devices never count"
        )
    if "/" not in name:
        raise UserError("is no name of a device", where=where, fix="as in nvidia.com/mig-1g.10gb")


def _is_cidr(text: str) -> bool:
    from ipaddress import ip_network

    try:
        ip_network(text)
    except ValueError:
        return False
    return "/" in text
