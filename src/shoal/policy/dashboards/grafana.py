"""Writes a dashboard as Grafana imports it: the data source is chosen at the import, panels are placed row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

PanelKind = Literal["timeseries", "stat", "table", "bargauge"]
Unit = Literal["percent", "percentunit", "celsius", "watt", "decmbytes", "Bps", "s", "currencyUSD", "short", "none"]
_SCHEMA = 39
_WIDTH = 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_HEIGHTS: Mapping[PanelKind, int] = {"timeseries": 8, "stat": 4, "table": 8, "bargauge": 8}
USE_STEPS = ((None, "red"), (40, "yellow"), (70, "green"), (95, "dark-red"))
"""The colours of use: busy training is well, a server of models above 95 % is saturated."""


def use(matchers: str = "") -> str:
    """The utilisation in percent; of MIG instances, which have none, the activity of their engines. A dashboard does
    not need the recording rules of alerts."""
    chosen = f"{{{matchers}}}" if matchers else ""
    return f"(DCGM_FI_DEV_GPU_UTIL{chosen} or 100 * DCGM_FI_PROF_GR_ENGINE_ACTIVE{chosen})"


class PanelQuery(msgspec.Struct, frozen=True):
    expression: str
    legend: str = ""
    """With labels in double braces, as in {{namespace}}."""


class Panel(msgspec.Struct, frozen=True):
    title: str
    queries: tuple[PanelQuery, ...]
    kind: PanelKind = "timeseries"
    unit: Unit = "short"
    width: int = 12
    """Of 24."""
    description: str = ""
    shows_use: bool = False
    """Its values are percentages of use, coloured as such."""
    is_stacked: bool = False


class Variable(msgspec.Struct, frozen=True):
    """A list from which a reader chooses, one or all."""

    name: str
    label: str
    query: str


class Dashboard(msgspec.Struct, frozen=True):
    name: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    variables: tuple[Variable, ...] = ()


def grafana_json(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "uid": f"shoal-{dashboard.name}",
        "title": f"Shoal / {dashboard.title}",
        "description": dashboard.description,
        "tags": ["shoal", "gpu"],
        "schemaVersion": _SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "",
        "time": {"from": "now-6h", "to": "now"},
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [_source_variable(), *map(_variable, dashboard.variables)]},
        "panels": list(_placed(dashboard.panels)),
    }


def config_map(dashboard: Dashboard, namespace: str) -> dict[str, Any]:
    """For the sidecar of Grafana's chart, which reads ConfigMaps with this label."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"shoal-dashboard-{dashboard.name}",
            "namespace": namespace,
            "labels": {"grafana_dashboard": "1"},
        },
        "data": {f"shoal-{dashboard.name}.json": msgspec.json.encode(grafana_json(dashboard)).decode()},
    }


def _placed(panels: tuple[Panel, ...]) -> Iterator[dict[str, Any]]:
    x = y = row = 0
    for number, panel in enumerate(panels, 1):
        height = _HEIGHTS[panel.kind]
        if x + panel.width > _WIDTH:
            x, y, row = 0, y + row, 0
        yield _panel(panel, number, {"x": x, "y": y, "w": panel.width, "h": height})
        x, row = x + panel.width, max(row, height)


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    found = {
        "id": number,
        "title": panel.title,
        "description": panel.description,
        "type": panel.kind,
        "gridPos": place,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _options(panel),
        "targets": [_target(query, panel, at) for at, query in enumerate(panel.queries)],
    }
    if panel.kind == "table":
        found["transformations"] = [{"id": "labelsToFields", "options": {}}, {"id": "merge", "options": {}}]
    return found


def _defaults(panel: Panel) -> dict[str, Any]:
    steps = USE_STEPS if panel.shows_use else ((None, "green"),)
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "thresholds": {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in steps]},
        "color": {"mode": "thresholds" if panel.shows_use else "palette-classic"},
    }
    if panel.shows_use:
        defaults |= {"min": 0, "max": 100}
    if panel.kind == "timeseries":
        stacking = {"mode": "normal" if panel.is_stacked else "none", "group": "A"}
        # Lines of use have the colours of their series: thresholds colour single values.
        defaults["color"] = {"mode": "palette-classic"}
        defaults["custom"] = {"fillOpacity": 20 if panel.is_stacked else 0, "stacking": stacking, "spanNulls": False}
    return defaults


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "timeseries":
        return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    if panel.kind == "table":
        return {"showHeader": True}
    reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    if panel.kind == "stat":
        return {"reduceOptions": reduced, "colorMode": "value", "graphMode": "area"}
    return {"reduceOptions": reduced, "orientation": "horizontal", "displayMode": "basic"}


def _target(query: PanelQuery, panel: Panel, at: int) -> dict[str, Any]:
    is_instant = panel.kind != "timeseries"
    return {
        "refId": chr(ord("A") + at),
        "datasource": _SOURCE,
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "instant": is_instant,
        "range": not is_instant,
        "format": "table" if panel.kind == "table" else "time_series",
    }


def _source_variable() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0}


def _variable(one: Variable) -> dict[str, Any]:
    return {
        "name": one.name,
        "label": one.label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": one.query, "refId": one.name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "hide": 0,
    }
