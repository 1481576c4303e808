"""The objects of the process that records the history of devices: account, claim of a volume, Deployment; and of the
web dashboard, which it serves."""

from __future__ import annotations

from typing import Any

from shoal.api.alert_targets import read_targets
from shoal.data.permissions import WEB as WEB_LINES
from shoal.install.objects.deployments import HISTORY, HISTORY_PART, WEB, history_deployment
from shoal.install.objects.network import history_network, web_network
from shoal.install.objects.permissions import further_permissions, own_permissions
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.quantity import ZERO, Quantity

Obj = dict[str, Any]
_KEEP = {"helm.sh/resource-policy": "keep"}
"""Helm does not delete an object with this annotation. `shoal uninstall` asks first."""


def history_objects(release: Release, values: ChartValues, nodes: int) -> list[Obj]:
    """Without labels. Raises UserError for a wrong size."""
    return [
        *own_permissions(HISTORY_PART, HISTORY, release.namespace),
        *([] if values.get("history.existingClaim") else [_claim(release, values)]),
        *history_network(release, values),
        history_deployment(release, values, nodes),
    ]


def web_objects(release: Release, values: ChartValues) -> list[Obj]:
    """Without labels. The pages need more rights to read than the history."""
    return [*further_permissions(WEB_LINES, WEB, HISTORY, release.namespace), *web_network(release, values)]


def check_web(values: ChartValues) -> None:
    """Raises UserError for pages that no process would serve."""
    if values.get("web.enabled") and not values.get("history.enabled"):
        what = "the pages are served by the process that records the history"
        raise UserError(what, where=Where(path="web.enabled"), fix="set history.enabled to true")


def check_alerts(values: ChartValues) -> None:
    """Raises UserError for alerts that cannot be evaluated, or cannot be sent."""
    if not values.get("alerts.enabled"):
        return
    if not values.get("history.enabled"):
        what = "alerts are evaluated beside the history"
        raise UserError(what, where=Where(path="alerts.enabled"), fix="set history.enabled to true")
    try:
        read_targets(str(one) for one in values.get("alerts.to"))
    except UserError as error:
        raise UserError(error.what, where=Where(path="alerts.to"), fix=error.fix) from None


def _claim(release: Release, values: ChartValues) -> Obj:
    spec: Obj = {
        "accessModes": [values.get("history.accessMode")],
        "resources": {"requests": {"storage": _size(values)}},
    }
    storage_class = values.get("history.storageClass")
    if storage_class:
        spec["storageClassName"] = storage_class
    meta = {"name": HISTORY, "namespace": release.namespace, "annotations": dict(_KEEP)}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def _size(values: ChartValues) -> str:
    text = str(values.get("history.size"))
    try:
        is_some = Quantity.parse(text) > ZERO
    except UserError:
        is_some = False
    if not is_some:
        raise UserError(f"{excerpt(text)} is not a size", where=Where(path="history.size"), fix="write it as 5Gi")
    return text
