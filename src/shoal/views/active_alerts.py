"""Alerts that are active now, as Prometheus, Alertmanager or Shoal itself reports them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.policy.alert_states import RuleAlert
from shoal.units.calendar_windows import rfc3339
from shoal.units.errors import TemporaryError, one_line

AlertState = Literal["firing", "pending", "suppressed"]
_AGAIN_S = 15.0
_ORDER = {"critical": 0, "warning": 1, "info": 2}


class ActiveAlert(msgspec.Struct, frozen=True):
    name: str
    state: AlertState
    """`pending`: its expression is true, but not yet for long enough. `suppressed`: silenced or inhibited."""
    labels: Mapping[str, str] = {}
    summary: str = ""
    description: str = ""
    runbook: str = ""
    since: str = ""
    """RFC 3339."""

    @property
    def severity(self) -> str:
        return self.labels.get("severity", "")

    @property
    def namespace(self) -> str:
        """Of the pod that it is about. dcgm-exporter's own namespace has another label."""
        return self.labels.get("exported_namespace") or self.labels.get("namespace", "")


class AlertsAnswer(msgspec.Struct, frozen=True):
    source: str = ""
    """Who evaluates the rules: the address of a Prometheus, or Shoal. Empty: nothing does."""
    alerts: Sequence[ActiveAlert] = ()
    fault: str = ""
    """Why they cannot be read."""


class _PrometheusAlert(msgspec.Struct, frozen=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    state: str = "firing"
    active_at: str = msgspec.field(default="", name="activeAt")


class _PrometheusData(msgspec.Struct, frozen=True):
    alerts: tuple[_PrometheusAlert, ...] = ()


class _PrometheusAnswer(msgspec.Struct, frozen=True):
    data: _PrometheusData = _PrometheusData()


class _ManagerStatus(msgspec.Struct, frozen=True):
    state: str = "active"


class _ManagerAlert(msgspec.Struct, frozen=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    status: _ManagerStatus = _ManagerStatus()
    starts_at: str = msgspec.field(default="", name="startsAt")


def prometheus_alerts(answer: bytes) -> list[ActiveAlert]:
    """Of `/api/v1/alerts`. Raises TemporaryError for an answer that is none."""
    try:
        found = msgspec.json.decode(answer, type=_PrometheusAnswer).data.alerts
    except msgspec.DecodeError as error:
        raise TemporaryError(f"the answer of Prometheus cannot be read: {error}", _AGAIN_S) from None
    return ordered(
        _alert(one.labels, one.annotations, "pending" if one.state == "pending" else "firing", one.active_at)
        for one in found
    )


def alertmanager_alerts(answer: bytes) -> list[ActiveAlert]:
    """Of `/api/v2/alerts`. Raises TemporaryError for an answer that is none."""
    try:
        found = msgspec.json.decode(answer, type=list[_ManagerAlert])
    except msgspec.DecodeError as error:
        raise TemporaryError(f"the answer of Alertmanager cannot be read: {error}", _AGAIN_S) from None
    return ordered(
        _alert(
            one.labels, one.annotations, "suppressed" if one.status.state == "suppressed" else "firing", one.starts_at
        )
        for one in found
    )


def evaluated_alerts(alerts: Iterable[RuleAlert]) -> list[ActiveAlert]:
    """Of Shoal's own evaluation. Until an alert fires it has no texts, so the rule's name says what it is about."""
    return ordered(_alert(one.labels, one.annotations, one.state, rfc3339(one.since_ms)) for one in alerts)


def ordered(alerts: Iterable[ActiveAlert]) -> list[ActiveAlert]:
    """Firing and severe ones first, then by name, then the oldest first."""
    return sorted(
        alerts, key=lambda one: (one.state != "firing", _ORDER.get(one.severity, len(_ORDER)), one.name, one.since)
    )


def _alert(labels: Mapping[str, str], annotations: Mapping[str, str], state: AlertState, since: str) -> ActiveAlert:
    """All texts are of others: each becomes one printable line."""
    return ActiveAlert(
        name=one_line(labels.get("alertname", "")),
        state=state,
        labels={one_line(key): one_line(value) for key, value in labels.items()},
        summary=one_line(annotations.get("summary", "")),
        description=one_line(annotations.get("description", "") or annotations.get("message", "")),
        runbook=one_line(annotations.get("runbook", "") or annotations.get("runbook_url", "")),
        since=one_line(since),
    )
