"""Alerts as Prometheus and Alertmanager report them."""

from __future__ import annotations

import msgspec
import pytest

from shoal.units.errors import TemporaryError
from shoal.views.active_alerts import alertmanager_alerts, prometheus_alerts


def test_prometheus_alerts_are_ordered_by_state_and_severity() -> None:
    def alert(name: str, severity: str, state: str = "firing") -> dict[str, object]:
        labels = {"alertname": name, "severity": severity, "namespace": "vision"}
        return {"labels": labels, "annotations": {"summary": f"{name} is on"}, "state": state, "activeAt": "2026-01-01"}

    alerts = [alert("B", "info"), alert("C", "critical", "pending"), alert("A", "critical")]
    answer = msgspec.json.encode({"status": "success", "data": {"alerts": alerts}})
    found = prometheus_alerts(answer)
    assert [(one.name, one.state) for one in found] == [("A", "firing"), ("B", "firing"), ("C", "pending")]
    assert (found[0].namespace, found[0].summary, found[0].severity) == ("vision", "A is on", "critical")


def test_alertmanager_says_which_alerts_are_silenced() -> None:
    alerts = [
        {"labels": {"alertname": "A"}, "status": {"state": "suppressed"}, "startsAt": "2026-01-01T00:00:00Z"},
        {"labels": {"alertname": "B", "exported_namespace": "vision", "namespace": "monitoring"}, "annotations": {}},
    ]
    found = alertmanager_alerts(msgspec.json.encode(alerts))
    assert [(one.name, one.state) for one in found] == [("B", "firing"), ("A", "suppressed")]
    assert found[0].namespace == "vision"


def test_texts_of_others_are_one_printable_line() -> None:
    labels = {"alertname": "A\x1b[2J", "node": "n\n0"}
    (found,) = prometheus_alerts(msgspec.json.encode({"data": {"alerts": [{"labels": labels}]}}))
    assert (found.name + found.labels["node"]).isprintable()


@pytest.mark.parametrize("read", [prometheus_alerts, alertmanager_alerts])
@pytest.mark.parametrize("answer", [b"<html>", b'{"data": 1}', b"[1]"])
def test_an_answer_that_is_none_is_a_temporary_error(read: object, answer: bytes) -> None:
    assert callable(read)
    with pytest.raises(TemporaryError, match="cannot be read"):
        read(answer)
