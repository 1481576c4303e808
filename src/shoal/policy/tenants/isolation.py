"""Judges what the server answered to the attempts of a team, and the traffic that NetworkPolicies let pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.policy.advice import Obj
from shoal.policy.tenants.attempts import Attempt
from shoal.policy.tenants.reachability import DIRECTIONS, Endpoint, denied, passes
from shoal.units.errors import one_line

IsolationState = Literal["refused", "allowed", "open", "blocked", "not run"]
_QUOTA_WORDS = ("exceeded quota", "must specify")
_METADATA, _OUTSIDE = "169.254.169.254", "93.184.215.14"
_NCCL_PORT, _DNS, _METRICS, _HTTPS = 29500, 53, 9400, 443
_MOST_TEXT = 200


class IsolationRow(msgspec.Struct, frozen=True, rename="camel"):
    """`refused`: forbidden and refused. `allowed`: must work and works. `open`: forbidden and possible. `blocked`: must
    work and is refused."""

    id: str
    group: str
    what: str
    state: IsolationState
    evidence: str = ""
    fix: str = ""

    @property
    def is_wrong(self) -> bool:
        return self.state in ("open", "blocked")


class Answer(msgspec.Struct, frozen=True):
    """Of the server to an attempt. `is_by_rights`: RBAC refused it."""

    is_refused: bool
    message: str = ""
    is_by_rights: bool = False
    is_unknown: bool = False
    """The server lacks the kind, or did not answer."""


def judged(attempt: Attempt, answer: Answer) -> IsolationRow:
    evidence = one_line(answer.message)[:_MOST_TEXT]
    if answer.is_unknown:
        state: IsolationState = "not run"
    elif attempt.is_allowed:
        is_used_up = answer.is_refused and _QUOTA_WORDS[0] in answer.message
        state = "not run" if is_used_up else "blocked" if answer.is_refused else "allowed"
    elif not answer.is_refused:
        state = "open"
    elif answer.is_by_rights and attempt.by != "RBAC":
        # The request ended before what it was meant to test.
        state, evidence = "not run", f"the team may not do it at all: {evidence}"
    else:
        state = "refused"
    fix = attempt.fix if state in ("open", "blocked") else ""
    return IsolationRow(attempt.id, attempt.group, attempt.what, state, evidence, fix)


def network_rows(
    policies: Sequence[Obj], namespaces: Mapping[str, Mapping[str, str]], own: str, others: Iterable[str]
) -> list[IsolationRow]:
    """By the NetworkPolicies alone. `namespaces`: their labels by name."""

    def inside(name: str) -> Endpoint:
        return Endpoint(name, {"kubernetes.io/metadata.name": name, **namespaces.get(name, {})})

    team = inside(own)
    rows = [
        _row("own-pods", "reach its own pods on any port", passes(policies, team, team, _NCCL_PORT), is_allowed=True),
        _row("dns", "resolve names", passes(policies, team, inside("kube-system"), _DNS, "UDP"), is_allowed=True),
        _row(
            "metadata",
            f"reach the metadata service of clouds ({_METADATA})",
            passes(policies, team, Endpoint(address=_METADATA), 80),
        ),
        _row(
            "plain-internet",
            "reach addresses outside of the cluster on any port",
            passes(policies, team, Endpoint(address=_OUTSIDE), _NCCL_PORT),
        ),
    ]
    for other in others:
        far = inside(other)
        out, back = (denied(policies, way, team, far, _NCCL_PORT) for way in DIRECTIONS)
        rows.append(_row(f"to-{other}", f"reach pods of {other}", out))
        rows.append(_row(f"from-{other}", f"be reached by pods of {other}", back))
    return rows


def _row(name: str, what: str, why: str, *, is_allowed: bool = False) -> IsolationRow:
    if is_allowed:
        state: IsolationState = "blocked" if why else "allowed"
    else:
        state = "refused" if why else "open"
    fix = "shoal tenant apply TEAM" if state in ("open", "blocked") else ""
    return IsolationRow(f"network-{name}", "network", what, state, why or "no policy denies it", fix)
