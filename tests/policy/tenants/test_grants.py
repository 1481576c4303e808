"""A grant raises what was asked for, remembers what was before, and ends to exactly that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.policy.tenants.grants import (
    QuotaGrant,
    amounts_of,
    ending_patch,
    former_items,
    grant_of,
    granting_patch,
    is_over,
    queue_with,
    request_object,
    request_rows,
    requested_devices,
)
from shoal.units.errors import UserError

Obj = dict[str, Any]


ENDED = ("admin", "2026-01-02T00:00:00Z")


def quota(hard: dict[str, str], annotations: dict[str, str] | None = None) -> Obj:
    meta = {"name": "team-quota", "namespace": "team-a", "resourceVersion": "7", "annotations": annotations or {}}
    return {"metadata": meta, "spec": {"hard": hard}}


def grant(former: dict[str, str], until: str = "2026-12-04T00:00:00Z", **devices: int) -> QuotaGrant:
    wanted = {name.replace("_", "-"): amount for name, amount in devices.items()} or {"nvidia.com/gpu": 24}
    return QuotaGrant("quota-request-1", "bob", "ann", "2026-11-27T00:00:00Z", until, wanted, former)


def merged(obj: Obj, patch: Obj) -> Obj:
    """A merge patch, written a second time."""
    made = dict(obj)
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, dict):
            made[key] = merged(made.get(key) or {}, value)
        else:
            made[key] = value
    return made


def test_a_grant_and_its_end_give_the_former_quota() -> None:
    before = quota({"requests.nvidia.com/gpu": "8", "requests.cpu": "64"})
    given = grant(former_items(before, {"nvidia.com/gpu": 24}))
    during = merged(before, granting_patch(before, given))
    assert during["spec"]["hard"] == {"requests.nvidia.com/gpu": "24", "requests.cpu": "64"}
    assert grant_of(during) == given
    after = merged(during, ending_patch(during, given, ENDED))
    assert after["spec"] == before["spec"]
    assert grant_of(after) is None
    record = after["metadata"]["annotations"]["shoal.dev/last-quota-grant"]
    assert '"endedBy":"admin","endedAt":"2026-01-02T00:00:00Z"' in record


def test_an_item_that_there_was_not_is_removed_at_the_end() -> None:
    before = quota({"requests.cpu": "64"})
    given = grant(former_items(before, {"nvidia.com/gpu": 24}))
    during = merged(before, granting_patch(before, given))
    assert merged(during, ending_patch(during, given, ENDED))["spec"] == before["spec"]


def test_a_second_grant_ends_to_the_quota_before_the_first() -> None:
    before = quota({"requests.nvidia.com/gpu": "8"})
    during = merged(before, granting_patch(before, grant(former_items(before, {"nvidia.com/gpu": 24}))))
    assert former_items(during, {"nvidia.com/gpu": 30}) == {"requests.nvidia.com/gpu": "8"}


@pytest.mark.parametrize(
    ("until", "now", "expected"),
    [
        ("2026-12-04T00:00:00Z", "2026-12-03T23:59:59Z", False),
        ("2026-12-04T00:00:00Z", "2026-12-04T00:00:00Z", True),
        ("", "2099-01-01T00:00:00Z", False),
    ],
)
def test_a_grant_is_over_at_its_end(until: str, now: str, expected: bool) -> None:
    assert is_over(grant({}, until), now) is expected


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "{",
        "[]",
        '{"gpus": 1}',
        '{"nvidia.com/gpu": -1}',
        '{"nvidia.com/gpu": "x"}',
        '{"requests.nvidia.com/gpu": 9}',
    ],
)
def test_a_request_of_another_form_is_refused(raw: str) -> None:
    with pytest.raises(UserError, match=r"data\.devices"):
        requested_devices({"metadata": {"name": "r"}, "data": {"devices": raw}})
    assert request_rows([{"metadata": {"name": "r"}, "data": {"devices": raw}}])[0].devices == "unreadable"


def test_a_request_says_who_asks_for_what() -> None:
    told = {"askedBy": "bob", "askedAt": "now", "until": "", "reason": "paper"}
    found = request_object("team-a", "team-a", "r", {"nvidia.com/gpu": 24}, told)
    assert requested_devices(found) == {"nvidia.com/gpu": 24}
    row = request_rows([found])[0]
    assert (row.state, row.asked_by, row.devices, row.reason) == ("pending", "bob", "24 nvidia.com/gpu", "paper")


def test_an_annotation_of_another_form_is_no_grant() -> None:
    assert grant_of(quota({}, {"shoal.dev/quota-grant": "{"})) is None
    assert grant_of(quota({}, {"shoal.dev/quota-grant": json.dumps({"request": 1})})) is None


def test_the_queue_follows_the_quota() -> None:
    resources = [{"name": "nvidia.com/gpu", "nominalQuota": "8"}, {"name": "cpu", "nominalQuota": "64"}]
    queue = {"spec": {"cohortName": "c", "resourceGroups": [{"flavors": [{"name": "f", "resources": resources}]}]}}
    found = queue_with(queue, amounts_of({"requests.nvidia.com/gpu": "24"}))
    assert found is not None
    flavor = found["spec"]["resourceGroups"][0]["flavors"][0]
    assert [one["nominalQuota"] for one in flavor["resources"]] == ["24", "64"]
    assert found["spec"]["cohortName"] == "c"
    assert queue_with(queue, {"nvidia.com/mig-1g.5gb": "1"}) is None
