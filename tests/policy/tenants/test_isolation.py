"""An attempt counts as refused only if what should refuse it did, and as open if the server would have done it."""

from __future__ import annotations

import pytest

from shoal.policy.tenants.attempts import Attempt, attempts
from shoal.policy.tenants.isolation import Answer, judged

_DENIED = Answer(is_refused=True, message='pods is forbidden: User "x" cannot create', is_by_rights=True)
_SECURITY = Answer(is_refused=True, message='pods "x" is forbidden: violates PodSecurity')
_FULL = Answer(is_refused=True, message='pods "x" is forbidden: exceeded quota: team-quota')
_DONE = Answer(is_refused=False)
_GONE = Answer(is_refused=False, message="no such kind", is_unknown=True)


def attempt(*, is_allowed: bool = False, by: str = "RBAC") -> Attempt:
    return Attempt("x", "pods", "do it", "create", {}, is_allowed=is_allowed, by=by)


@pytest.mark.parametrize(
    ("tried", "answer", "state"),
    [
        (attempt(), _DENIED, "refused"),
        (attempt(), _SECURITY, "refused"),
        (attempt(), _DONE, "open"),
        (attempt(), _GONE, "not run"),
        (attempt(by="Pod Security"), _SECURITY, "refused"),
        (attempt(by="Pod Security"), _DENIED, "not run"),
        (attempt(is_allowed=True), _DONE, "allowed"),
        (attempt(is_allowed=True), _DENIED, "blocked"),
        (attempt(is_allowed=True), _FULL, "not run"),
    ],
)
def test_an_answer_is_judged_by_what_was_attempted(tried: Attempt, answer: Answer, state: str) -> None:
    row = judged(tried, answer)
    assert row.state == state
    assert bool(row.fix) == (state in ("open", "blocked"))


def test_a_viewer_need_not_create_pods_and_of_an_account_nothing_is_expected() -> None:
    def needed(role: str | None) -> list[str]:
        found = attempts("team-a", ["team-b"], 8, role)  # type: ignore[arg-type]
        return [one.id for one in found if one.is_allowed]

    assert needed("developer") == ["create-pod", "create-gpu-pod", "read-own-pods"]
    assert needed("viewer") == ["read-own-pods"]
    assert needed(None) == []


def test_a_team_without_gpus_is_refused_the_first_one() -> None:
    found = {one.id: one for one in attempts("team-a", [], 0, "developer")}
    assert "create-gpu-pod" not in found
    limits = found["too-many-gpus"].obj["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "1"


def test_ids_are_unique() -> None:
    names = [one.id for one in attempts("team-a", ["b", "c"], 1, "developer")]
    assert len(set(names)) == len(names)
