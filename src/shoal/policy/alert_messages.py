"""Alerts as the receivers of alerts read them: Alertmanager's API v2, and the body of Alertmanager's webhooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from shoal.policy.alert_states import AlertChanges, RuleAlert
from shoal.units.calendar_windows import rfc3339

_VALID_MS = 240_000
"""An alert that is not sent again for so long has ended for Alertmanager: this process may have."""
_NO_END = "0001-01-01T00:00:00Z"
RECEIVER = "shoal"


def alertmanager_alerts(firing: Iterable[RuleAlert], ended: Iterable[RuleAlert], now_ms: int) -> list[dict[str, Any]]:
    """Of `POST /api/v2/alerts`."""
    return [_posted(one, now_ms + _VALID_MS) for one in firing] + [
        _posted(one, one.ended_ms or now_ms) for one in ended
    ]


def webhook_body(changes: AlertChanges) -> dict[str, Any]:
    """One message for what has begun and ended at a moment."""
    alerts = [_told(one) for one in (*changes.fired, *changes.ended)]
    return {
        "version": "4",
        "groupKey": "{}",
        "truncatedAlerts": 0,
        "status": "firing" if changes.fired else "resolved",
        "receiver": RECEIVER,
        "groupLabels": {},
        "commonLabels": _common([one["labels"] for one in alerts]),
        "commonAnnotations": _common([one["annotations"] for one in alerts]),
        "externalURL": "",
        "alerts": alerts,
    }


def prometheus_answer(alerts: Iterable[RuleAlert]) -> dict[str, Any]:
    """The answer of Prometheus to `GET /api/v1/alerts`."""
    found = [
        {
            "labels": one.labels,
            "annotations": one.annotations,
            "state": one.state,
            "activeAt": rfc3339(one.since_ms),
            "value": f"{one.value:e}",
        }
        for one in alerts
    ]
    return {"status": "success", "data": {"alerts": found}}


def fingerprint(alert: RuleAlert) -> str:
    text = "\x00".join(part for pair in alert.key for part in pair)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _posted(one: RuleAlert, end_ms: int) -> dict[str, Any]:
    return {
        "labels": one.labels,
        "annotations": one.annotations,
        "startsAt": rfc3339(one.fired_ms or one.since_ms),
        "endsAt": rfc3339(end_ms),
    }


def _told(one: RuleAlert) -> dict[str, Any]:
    return {
        "status": "firing" if one.ended_ms is None else "resolved",
        "labels": one.labels,
        "annotations": one.annotations,
        "startsAt": rfc3339(one.fired_ms or one.since_ms),
        "endsAt": _NO_END if one.ended_ms is None else rfc3339(one.ended_ms),
        "generatorURL": "",
        "fingerprint": fingerprint(one),
    }


def _common(found: Sequence[dict[str, str]]) -> dict[str, str]:
    first, *others = found
    return {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}
