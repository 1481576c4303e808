"""Makes the attempts of a team at the API server, as a member or an account of it, and reads what the rows need."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.client.item import Obj
from shoal.client.kind import NAMESPACES, SERVICE_ACCOUNTS, Kind
from shoal.client.port import Api, Deletion, Patch
from shoal.client.refusals import (
    AlreadyExistsError,
    BusyError,
    ForbiddenError,
    NotFoundError,
    RefusedError,
)
from shoal.client.served_writer import ServedWriter
from shoal.policy.tenants.access import role_name
from shoal.policy.tenants.attempts import Attempt, attempts
from shoal.policy.tenants.isolation import Answer, IsolationRow, judged, network_rows
from shoal.policy.tenants.labels import QUOTA, TEAM_LABEL
from shoal.policy.tenants.team import GPU, Role
from shoal.units.errors import ConflictError, UserError, Where
from shoal.units.numbers import whole_of
from shoal.wiring.tenants.quota_requests import QUOTAS, namespace_of

BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
POLICIES = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
_MOST_OTHERS = 3
_CHECKER = "shoal-tenant-check"
_ACCOUNT = "system:serviceaccount:"


class TeamMember(msgspec.Struct, frozen=True):
    """The user of the attempts."""

    user: str
    groups: tuple[str, ...] = ()


class TeamFacts(msgspec.Struct, frozen=True):
    name: str
    namespace: str
    others: tuple[str, ...]
    """Namespaces of other teams."""
    labels: dict[str, dict[str, str]]
    """Of namespaces."""
    gpus: int
    policies: tuple[Obj, ...]


async def team_facts(api: Api, team: str) -> TeamFacts:
    """Raises UserError if there is no such team."""
    own = await namespace_of(api, team)
    namespaces = [item.obj() for item in (await api.list(NAMESPACES)).items]
    labels = {obj["metadata"]["name"]: obj["metadata"].get("labels") or {} for obj in namespaces}
    others = [name for name, found in labels.items() if found.get(TEAM_LABEL, team) != team]
    quota = await _quota(api, own)
    policies = [{**item.obj(), "apiVersion": "networking.k8s.io/v1"} for item in (await api.list(POLICIES)).items]
    return TeamFacts(team, own, tuple(others[:_MOST_OTHERS]), labels, quota, tuple(policies))


async def member(api: Api, facts: TeamFacts, role: Role) -> TeamMember:
    """One member of the role, by its RoleBinding. Raises UserError."""
    try:
        binding = (await api.get(BINDINGS, facts.namespace, role_name(role))).obj()
    except NotFoundError:
        binding = {}
    for subject in binding.get("subjects") or ():
        match subject.get("kind"):
            case "Group":
                return TeamMember(_CHECKER, (subject["name"], "system:authenticated"))
            case "User":
                return TeamMember(subject["name"], ("system:authenticated",))
            case "ServiceAccount":
                return account(subject.get("namespace", facts.namespace), subject["name"])
    fix = f"add one to spec.members.{role}s of the team, or name an account with --account"
    raise UserError(f"team {facts.name} has no member with the role {role}", where=Where(path="--role"), fix=fix)


def account(namespace: str, name: str) -> TeamMember:
    groups = (f"{_ACCOUNT[:-1]}s", f"{_ACCOUNT[:-1]}s:{namespace}", "system:authenticated")
    return TeamMember(f"{_ACCOUNT}{namespace}:{name}", groups)


async def account_token(api: Api, namespace: str, name: str) -> str:
    """Of a ServiceAccount, for ten minutes."""
    request: dict[str, Any] = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }
    answer = await api.post(SERVICE_ACCOUNTS, namespace, name, "token", request)
    return str((answer.get("status") or {}).get("token", ""))


async def isolation_rows(
    team_api: Api, writer: ServedWriter, facts: TeamFacts, role: Role | None
) -> list[IsolationRow]:
    """`team_api`: as the member; writes are dry runs. `writer`: as the administrator, for the served kinds."""
    rows = [
        judged(attempt, await _answer(team_api, writer, attempt))
        for attempt in attempts(facts.namespace, facts.others, facts.gpus, role)
    ]
    return [*rows, *network_rows(facts.policies, facts.labels, facts.namespace, facts.others)]


async def _answer(api: Api, writer: ServedWriter, attempt: Attempt) -> Answer:
    kind = writer.kind_of(attempt.obj)
    if kind is None:
        return Answer(is_refused=False, message="the cluster has no such kind", is_unknown=True)
    try:
        await _request(api, kind, attempt)
    except ForbiddenError as error:
        return Answer(is_refused=True, message=str(error), is_by_rights=bool(error.verb))
    except (NotFoundError, AlreadyExistsError, ConflictError):
        # It was allowed to ask.
        return Answer(is_refused=False)
    except RefusedError as error:
        return Answer(is_refused=True, message=str(error))
    except BusyError as error:
        return Answer(is_refused=False, message=str(error), is_unknown=True)
    return Answer(is_refused=False)


async def _request(api: Api, kind: Kind, attempt: Attempt) -> None:
    meta = attempt.obj["metadata"]
    namespace, name = str(meta.get("namespace", "")), str(meta["name"])
    match attempt.verb:
        case "get":
            await api.get(kind, namespace, name)
        case "create":
            await api.create(kind, {**attempt.obj, "apiVersion": kind.api_version})
        case "patch":
            body = {key: value for key, value in attempt.obj.items() if key not in ("apiVersion", "kind")}
            await api.patch(kind, namespace, name, Patch("merge", body))
        case "delete":
            await api.delete(kind, namespace, name, Deletion())


async def _quota(api: Api, namespace: str) -> int:
    try:
        found = (await api.get(QUOTAS, namespace, QUOTA)).obj()
    except NotFoundError:
        return 0
    return whole_of(str((found.get("spec") or {}).get("hard", {}).get(f"requests.{GPU}", 0))) or 0
