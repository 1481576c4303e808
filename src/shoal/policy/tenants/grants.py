"""Requests for more quota, and what was granted: who asked, who granted, and until when.

A request is a ConfigMap that members of the team create, so that nothing in it is proof. A grant is an annotation of
the ResourceQuota, which they cannot write. A grant with an end is undone by the part `tenants` of `shoal run`, or by
`shoal tenant expire`; the ResourceQuota then has the grant as a record, with who ended it and when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from shoal.policy.advice import Obj
from shoal.policy.fields import dig, string_keys
from shoal.policy.tenants.labels import GRANT, LAST_GRANT, MANAGED_BY, MANAGER, TEAM_LABEL
from shoal.policy.tenants.quotas import quota_item
from shoal.units.errors import UserError, Where

REQUEST_LABEL: Final = "shoal.dev/quota-request"
REQUESTED, GRANTED, ENDED = "QuotaRequested", "QuotaGranted", "QuotaGrantEnded"
_ANNOTATION: Final = "shoal.dev/quota-decision"
_MOST_DEVICES = 32
"""Names in one request. The grant is an annotation, and all annotations of an object are of bounded size."""
_LONGEST_TEXT = 256


class QuotaGrant(msgspec.Struct, frozen=True, rename="camel"):
    request: str
    asked_by: str
    granted_by: str
    granted_at: str
    until: str
    """Empty: without an end."""
    devices: dict[str, int]
    former: dict[str, str]
    """The items of the quota before, which hold again when the grant ends."""
    reason: str = ""
    former_queue: dict[str, dict[str, str]] = {}
    """The nominal quotas of the ClusterQueue before, by flavor and resource."""

    def is_same(self, other: QuotaGrant) -> bool:
        """Whether both are one decision, whatever was recorded about the time before it since."""
        return (self.request, self.granted_at) == (other.request, other.granted_at)


def request_object(namespace: str, team: str, name: str, devices: Mapping[str, int], told: Mapping[str, str]) -> Obj:
    """`told`: who asks, when, until when, and why."""
    data = {**told, "devices": msgspec.json.encode(dict(devices)).decode()}
    labels = {REQUEST_LABEL: "pending", TEAM_LABEL: team, MANAGED_BY: MANAGER}
    meta = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


class RequestRow(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    name: str
    state: str
    devices: str
    asked_by: str
    """As the request says; members of the team can write anything."""
    until: str
    reason: str


def request_rows(requests: Iterable[Obj]) -> list[RequestRow]:
    return sorted((_request_row(one) for one in requests), key=lambda row: (row.namespace, row.name))


def _request_row(request: Obj) -> RequestRow:
    data = string_keys(request.get("data"))
    try:
        devices = ", ".join(f"{amount} {name}" for name, amount in requested_devices(request).items())
    except UserError:
        devices = "unreadable"
    return RequestRow(
        namespace=str(dig(request, "metadata", "namespace") or ""),
        name=str(dig(request, "metadata", "name") or ""),
        state=str(dig(request, "metadata", "labels", REQUEST_LABEL) or ""),
        devices=devices,
        asked_by=str(data.get("askedBy", "")),
        until=str(data.get("until", "")),
        reason=str(data.get("reason", "")),
    )


def requested_devices(request: Obj) -> dict[str, int]:
    """Raises UserError for a ConfigMap that is no request."""
    try:
        found = msgspec.json.decode(str(dig(request, "data", "devices") or ""), type=dict[str, int])
    except (msgspec.DecodeError, msgspec.ValidationError):
        found = {}
    if (
        not found
        or len(found) > _MOST_DEVICES
        or any(amount < 0 or not is_device(name) for name, amount in found.items())
    ):
        name = str(dig(request, "metadata", "name"))
        raise UserError("names no amounts of devices", where=Where(obj=f"ConfigMap {name}", path="data.devices"))
    return found


def is_device(name: str) -> bool:
    """Whether it is the name of a resource with a domain, and not an item of a quota."""
    return "/" in name and not name.startswith(("requests.", "limits."))


def grant_of(quota: Obj) -> QuotaGrant | None:
    raw = string_keys(dig(quota, "metadata", "annotations")).get(GRANT)
    if not isinstance(raw, str):
        return None
    try:
        return msgspec.json.decode(raw, type=QuotaGrant)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def end_s(until: str) -> float | None:
    """In seconds since 1970; None for a text that is no time."""
    try:
        return datetime.strptime(until, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def seconds_left(grant: QuotaGrant, now_s: float) -> float | None:
    """Until its end, negative after it; None for a grant without an end."""
    end = end_s(grant.until)
    return None if end is None else end - now_s


def is_over(grant: QuotaGrant, now_s: float) -> bool:
    left_s = seconds_left(grant, now_s)
    return left_s is not None and left_s <= 0


def bounded(told: str) -> str:
    """What a member of the team wrote, as the grant keeps it."""
    return told[:_LONGEST_TEXT]


def ended_words(grant: QuotaGrant) -> str:
    return f"the grant of {devices_words(grant.devices)} by {grant.granted_by} ended at {grant.until}"


def devices_words(devices: Mapping[str, int]) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in devices.items())


def encoded(grant: QuotaGrant) -> str:
    """As the annotation."""
    return msgspec.json.encode(grant).decode()


def granting_patch(quota: Obj, grant: QuotaGrant) -> Obj:
    """A merge patch of the ResourceQuota."""
    hard = {quota_item(name): str(amount) for name, amount in grant.devices.items()}
    return {
        "metadata": {
            "annotations": {GRANT: encoded(grant)},
            "resourceVersion": dig(quota, "metadata", "resourceVersion"),
        },
        "spec": {"hard": hard},
    }


def ending_patch(quota: Obj, grant: QuotaGrant, by: tuple[str, str]) -> Obj:
    """Back to the former items; those that there were not are removed. `by`: who ends it, and when."""
    record = {**msgspec.to_builtins(grant), "endedBy": by[0], "endedAt": by[1]}
    kept = {GRANT: None, LAST_GRANT: msgspec.json.encode(record).decode()}
    hard: dict[str, str | None] = {quota_item(name): None for name in grant.devices}
    return {
        "metadata": {"annotations": kept, "resourceVersion": dig(quota, "metadata", "resourceVersion")},
        "spec": {"hard": {**hard, **grant.former}},
    }


def former_items(quota: Obj, devices: Mapping[str, int]) -> dict[str, str]:
    """Those that hold again after a grant of these devices. Raises UserError if a grant of others is in the quota: an
    object has one, so that the others would stay for ever."""
    hard = string_keys(dig(quota, "spec", "hard"))
    earlier = grant_of(quota)
    if earlier is None:
        return {item: str(hard[item]) for name in devices if (item := quota_item(name)) in hard}
    others = {name: amount for name, amount in earlier.devices.items() if name not in devices}
    if others:
        until = f" until {earlier.until}" if earlier.until else ""
        raise UserError(
            f"has a grant of {devices_words(others)}{until} already (request {earlier.request})",
            where=Where(obj=f"ResourceQuota {dig(quota, 'metadata', 'namespace')}/{dig(quota, 'metadata', 'name')}"),
            fix="ask for all devices in one request, or approve after `shoal tenant expire` ended that grant",
        )
    new = {quota_item(name) for name in devices if name not in earlier.devices}
    return {**{item: str(hard[item]) for item in new if item in hard}, **earlier.former}


def decision_patch(state: str, by: str, when: str) -> Obj:
    """Of the request."""
    meta = {"labels": {REQUEST_LABEL: state}, "annotations": {_ANNOTATION: f"{state} by {by} at {when}"}}
    return {"metadata": meta}
