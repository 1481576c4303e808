"""A grant raises what was asked for, remembers what was before, and ends to exactly that."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from shoal.policy.tenants.grants import (
    QuotaGrant,
    end_s,
    ending_patch,
    former_items,
    grant_of,
    granting_patch,
    is_over,
    request_object,
    request_rows,
    requested_devices,
)
from shoal.policy.tenants.queue_grants import former_queue, granted_queue, nominal_quotas
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


def test_a_second_grant_of_what_there_was_not_ends_without_it() -> None:
    before = quota({"requests.cpu": "64"})
    during = merged(before, granting_patch(before, grant({})))
    assert former_items(during, {"nvidia.com/gpu": 30}) == {}


def test_a_second_grant_of_other_devices_is_refused_because_the_first_would_stay_for_ever() -> None:
    before = quota({"requests.nvidia.com/gpu": "8", "requests.nvidia.com/mig-1g.5gb": "0"})
    during = merged(before, granting_patch(before, grant(former_items(before, {"nvidia.com/gpu": 24}))))
    with pytest.raises(UserError, match=r"has a grant of 24 nvidia\.com/gpu until 2026-12-04T00:00:00Z already"):
        former_items(during, {"nvidia.com/mig-1g.5gb": 7})
    assert former_items(during, {"nvidia.com/mig-1g.5gb": 7, "nvidia.com/gpu": 30}) == {
        "requests.nvidia.com/gpu": "8",
        "requests.nvidia.com/mig-1g.5gb": "0",
    }


@pytest.mark.parametrize(
    ("until", "now", "expected"),
    [
        ("2026-12-04T00:00:00Z", "2026-12-03T23:59:59Z", False),
        ("2026-12-04T00:00:00Z", "2026-12-04T00:00:00Z", True),
        ("2027-1-1T0:0:0Z", "2027-01-01T00:00:01Z", True),
        ("", "2099-01-01T00:00:00Z", False),
    ],
)
def test_a_grant_is_over_at_its_end(until: str, now: str, expected: bool) -> None:
    now_s = end_s(now)
    assert now_s is not None
    assert is_over(grant({}, until), now_s) is expected


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
        json.dumps({f"nvidia.com/d{at}": 1 for at in range(33)}),
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


def queue(*gpus: str) -> Obj:
    """With one flavor for each amount."""
    flavors = [
        {
            "name": f"f{at}",
            "resources": [{"name": "nvidia.com/gpu", "nominalQuota": amount}, {"name": "cpu", "nominalQuota": "64"}],
        }
        for at, amount in enumerate(gpus)
    ]
    return {"spec": {"cohortName": "c", "resourceGroups": [{"flavors": flavors}]}}


def amounts(found: Obj | None) -> list[str]:
    assert found is not None
    assert found["spec"]["cohortName"] == "c"
    flavors = found["spec"]["resourceGroups"][0]["flavors"]
    assert {flavor["resources"][1]["nominalQuota"] for flavor in flavors} == {"64"}
    return [flavor["resources"][0]["nominalQuota"] for flavor in flavors]


@pytest.mark.parametrize(
    ("before", "granted", "during"),
    [
        (["8"], 24, ["24"]),
        (["4", "4"], 24, ["20", "4"]),
        (["4", "4"], 2, ["0", "2"]),
        (["4", "4", "4"], 6, ["0", "2", "4"]),
    ],
)
def test_the_flavors_of_the_queue_have_the_granted_amount_together_and_end_as_they_were(
    before: list[str], granted: int, during: list[str]
) -> None:
    wanted = {"nvidia.com/gpu": granted}
    former = nominal_quotas(queue(*before), wanted)
    given = msgspec.structs.replace(grant({}), devices=wanted, former_queue=former)
    raised = granted_queue(queue(*before), wanted)
    assert amounts(raised) == during
    assert raised is not None
    assert amounts(former_queue(raised, given)) == before
    assert granted_queue(queue(*before), {"nvidia.com/mig-1g.5gb": 1}) is None


def test_a_second_grant_remembers_the_queue_before_the_first() -> None:
    first = msgspec.structs.replace(grant({}), former_queue={"f0": {"nvidia.com/gpu": "8"}})
    assert nominal_quotas(queue("24"), {"nvidia.com/gpu": 30}, first) == {"f0": {"nvidia.com/gpu": "8"}}


def test_a_queue_that_the_first_grant_did_not_raise_is_remembered_by_the_second() -> None:
    assert nominal_quotas(queue("8"), {"nvidia.com/gpu": 30}, grant({})) == {"f0": {"nvidia.com/gpu": "8"}}


def test_a_queue_of_which_nothing_is_recorded_is_left_alone() -> None:
    assert former_queue(queue("24"), grant({})) is None
