"""Services, network policies, disruption budgets and monitors of Shoal's own pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.data.permissions import POD_AUTOSCALING
from shoal.install.objects.certificates import WEBHOOK_SERVICE
from shoal.install.objects.deployments import (
    HISTORY,
    HISTORY_PART,
    METRICS_PORT,
    METRICS_SERVICE,
    OBSERVER,
    OBSERVER_PART,
    OPERATOR_PART,
    SCHEDULER,
    WEB,
    WEB_PORT,
    WEBHOOK_PORT,
)
from shoal.install.release import PART, Release
from shoal.install.values.reading import ChartValues

Obj = dict[str, Any]
KUBE_STATE_PATH = "/kube-state-metrics"


def network_objects(release: Release, values: ChartValues) -> Iterator[tuple[str, Obj]]:
    """Each with its component; without labels."""
    has_operator = values.get("operator.enabled")
    if values.get("webhook.enabled"):
        yield SCHEDULER, service(release, WEBHOOK_SERVICE, SCHEDULER, (443, "webhook"))
    yield SCHEDULER, service(release, METRICS_SERVICE, SCHEDULER, (METRICS_PORT, "metrics"))
    if has_operator:
        yield OPERATOR_PART, service(release, "shoal-operator-metrics", OPERATOR_PART, (METRICS_PORT, "metrics"))
    if values.get("networkPolicies.enabled"):
        yield SCHEDULER, policy(release, "shoal", SCHEDULER, (METRICS_PORT, WEBHOOK_PORT))
        if has_operator:
            yield OPERATOR_PART, policy(release, "shoal-operator", OPERATOR_PART, (METRICS_PORT,))
    if values.get("podDisruptionBudget.enabled") and values.get("replicas") > 1:
        spec = {"minAvailable": 1, "selector": {"matchLabels": release.selector(SCHEDULER)}}
        yield SCHEDULER, _object("policy/v1", "PodDisruptionBudget", release, "shoal", spec)
    if values.get("metrics.serviceMonitor.enabled"):
        others = {
            OPERATOR_PART: has_operator,
            POD_AUTOSCALING: values.get("podAutoscaling.enabled"),
            HISTORY_PART: values.get("history.enabled"),
        }
        chosen = [SCHEDULER, *(part for part, is_there in others.items() if is_there)]
        yield SCHEDULER, _monitor(release, values, chosen)


def observer_network(release: Release, values: ChartValues) -> Iterator[Obj]:
    """Of the observer, where it is installed alone."""
    yield service(release, f"{OBSERVER}-metrics", OBSERVER_PART, (METRICS_PORT, "metrics"))
    if values.get("networkPolicies.enabled"):
        yield policy(release, OBSERVER, OBSERVER_PART, (METRICS_PORT,))
    if values.get("metrics.serviceMonitor.enabled"):
        yield _monitor(release, values, [OBSERVER_PART])


def history_network(release: Release, values: ChartValues) -> Iterator[Obj]:
    """Of the process that records."""
    yield monitored_service(release, f"{HISTORY}-metrics", HISTORY_PART)
    if values.get("networkPolicies.enabled"):
        yield policy(release, HISTORY, HISTORY_PART, (METRICS_PORT,))


def web_network(release: Release, values: ChartValues) -> Iterator[Obj]:
    """Of the pages that the same process serves."""
    yield service(release, WEB, HISTORY_PART, (WEB_PORT, "web"))
    if values.get("networkPolicies.enabled"):
        yield policy(release, WEB, HISTORY_PART, (WEB_PORT,))


def _monitor(release: Release, values: ChartValues, parts: list[str]) -> Obj:
    interval = values.get("metrics.serviceMonitor.interval")
    # Labels of series name namespaces and pods, which are not those of Shoal's own pod.
    endpoints: list[Obj] = [{"port": "metrics", "interval": interval, "honorLabels": True}]
    if SCHEDULER in parts and values.get("metrics.kubeState.enabled"):
        endpoints.append({"port": "metrics", "path": KUBE_STATE_PATH, "interval": interval, "honorLabels": True})
    spec = {
        "endpoints": endpoints,
        "selector": {
            "matchLabels": {"app.kubernetes.io/name": "shoal"},
            "matchExpressions": [{"key": PART, "operator": "In", "values": parts}],
        },
    }
    return _object("monitoring.coreos.com/v1", "ServiceMonitor", release, "shoal", spec)


def service(release: Release, name: str, part: str, port: tuple[int, str]) -> Obj:
    number, target = port
    spec = {
        "selector": release.selector(part),
        "ports": [{"name": target, "port": number, "targetPort": target, "protocol": "TCP"}],
    }
    return _object("v1", "Service", release, name, spec)


def monitored_service(release: Release, name: str, part: str) -> Obj:
    """For Shoal's own metrics."""
    return service(release, name, part, (METRICS_PORT, "metrics"))


def policy(release: Release, name: str, part: str, ports: tuple[int, ...]) -> Obj:
    """Incoming connections only: the address of the API server, where the others lead, is not known to a policy."""
    spec = {
        "podSelector": {"matchLabels": release.selector(part)},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": port, "protocol": "TCP"} for port in ports]}],
    }
    return _object("networking.k8s.io/v1", "NetworkPolicy", release, name, spec)


def _object(api_version: str, kind: str, release: Release, name: str, spec: Obj) -> Obj:
    meta = {"name": name, "namespace": release.namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}
