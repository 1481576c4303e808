"""The page of alerts: those that are active, and the rules of `shoal alerts` with their runbooks."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.policy.alert_rules import ALERTS
from shoal.views.active_alerts import ActiveAlert, AlertsAnswer
from shoal.views.dashboard.words import age, plural
from shoal.web.markup import element, joined
from shoal.web.page import WebPage
from shoal.web.permitted_history import Namespaces
from shoal.web.ports import PageCommands
from shoal.web.tables import DataTable, Heading, TableCell, table_markup
from shoal.web.viewer import Viewer

PATH = "/alerts"
_STYLES = {"critical": "fault", "warning": "waits"}
_UNSHOWN = frozenset(
    {
        *("alertname", "severity", "prometheus", "job", "instance", "endpoint", "service", "container"),
        *("DCGM_FI_DRIVER_VERSION", "UUID", "device", "err_msg", "modelName", "pci_bus_id"),
    }
)
"""Labels that do not say what an alert is about, or say it again; the CSV leaves them out as well."""
_OF_QUEUES = "cluster_queue"


class AlertsPage:
    def __init__(self, commands: PageCommands) -> None:
        self._commands = commands

    def page(self, answer: AlertsAnswer, viewer: Viewer, now_s: float) -> WebPage:
        shown = [one for one in answer.alerts if is_permitted(one, viewer)]
        tables = [self._active(shown, answer, now_s), _rules()]
        words = []
        if answer.source:
            words.append(element("p", f"The rules are evaluated by {answer.source}.", class_="empty"))
        else:
            fix = "name a Prometheus, an Alertmanager or the metrics of shoal run with shoal web --alerts-from URL"
            words.append(element("p", f"The rules are not evaluated: {fix}.", class_="waits"))
        if answer.fault:
            words.append(element("p", f"Alerts cannot be read: {answer.fault}", class_="fault"))
        hidden = len(answer.alerts) - len(shown)
        if hidden:
            what = plural(hidden, "alert")
            words.append(element("p", f"{what} of what your account may not list: not shown", class_="empty"))
        parts = {
            "head": joined((element("h1", "Alerts"), *words)),
            **{f"of-{one.key}": table_markup(one, PATH) for one in tables},
        }
        return WebPage("Alerts", PATH, parts, "alerts", tables)

    def _active(self, alerts: Sequence[ActiveAlert], answer: AlertsAnswer, now_s: float) -> DataTable:
        names = ("alert", "severity", "state", "since", "summary", "labels", "runbook")
        rows = [
            [
                TableCell(one.name, style=_STYLES.get(one.severity, "")),
                TableCell(one.severity, style=_STYLES.get(one.severity, "")),
                TableCell(one.state, style="" if one.state == "firing" else "waits"),
                TableCell(age(one.since, now_s)),
                TableCell(one.summary or one.description),
                TableCell(", ".join(f"{key}={value}" for key, value in _shown_labels(one))),
                TableCell(one.runbook),
            ]
            for one in alerts
        ]
        empty = "No alert is active." if answer.source and not answer.fault else "Nothing is known of active alerts."
        command = self._commands.table(PATH, "active", is_of_alerts=True)
        return DataTable("active", "Active alerts", command, [Heading(name) for name in names], rows, empty)


def _rules() -> DataTable:
    names = ("alert", "severity", "for", "expression", "runbook")
    rows = [
        [
            TableCell(rule.name),
            TableCell(rule.severity, style=_STYLES.get(rule.severity, "")),
            TableCell(rule.lasting),
            TableCell(rule.expression, drawing=element("code", rule.expression), style="wide"),
            TableCell(rule.runbook),
        ]
        for rule in ALERTS
    ]
    return DataTable("rules", "Rules", "shoal alerts", [Heading(name) for name in names], rows, "There are no rules.")


def is_permitted(alert: ActiveAlert, viewer: Viewer) -> bool:
    """An alert names a namespace, a queue, or a node."""
    seen: Namespaces = viewer.namespaces
    if alert.namespace:
        return seen is None or alert.namespace in seen
    if _OF_QUEUES in alert.labels:
        return viewer.lists_queues
    # Summaries name nodes.
    return viewer.lists_nodes


def _shown_labels(alert: ActiveAlert) -> list[tuple[str, str]]:
    return sorted((key, value) for key, value in alert.labels.items() if key not in _UNSHOWN)
