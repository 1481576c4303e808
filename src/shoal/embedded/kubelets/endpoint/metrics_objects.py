"""Builds the objects with which the API server serves metrics.k8s.io from the fleet: a Service, an APIService, and a
role that allows users who may read pods to read their metrics.
"""

from __future__ import annotations

import base64

from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION
from shoal.embedded.kubelets.endpoint.metrics_api import GROUP, VERSION
from shoal.embedded.kubelets.node_view import Obj

NAMESPACE, SERVICE = "kube-system", "metrics-server"
SERVER_NAME = f"{SERVICE}.{NAMESPACE}.svc"
"""The host name in the certificate of the Service's server."""
_LABELS = {"k8s-app": SERVICE}
_READERS = {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in ("admin", "edit", "view")}


def metrics_objects(address: str, port: int, ca: str) -> tuple[Obj, ...]:
    """`address`: a loopback address of this machine; `ca`: PEM. The objects must be created, or replaced, in this
    order.
    """
    host = f"[{address}]" if ":" in address else address
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": SERVICE,
            "namespace": NAMESPACE,
            "labels": _LABELS,
            "annotations": {ANNOTATION: f"https://{host}:{port}"},
        },
        "spec": {"ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]},
    }
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:aggregated-metrics-reader", "labels": {**_LABELS, **_READERS}},
        "rules": [{"apiGroups": [GROUP], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}],
    }
    return service, role, api_service(GROUP, VERSION, ca)


def api_service(group: str, version: str, ca: str) -> Obj:
    """One version of a group, served by the Service of this process."""
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}", "labels": _LABELS},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 200 if version == "v1beta2" else 100,
            "service": {"namespace": NAMESPACE, "name": SERVICE, "port": 443},
            "caBundle": base64.b64encode(ca.encode()).decode(),
        },
    }
