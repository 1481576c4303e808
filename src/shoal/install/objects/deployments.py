"""The Deployments of Shoal's own programs: their pods need no privilege, no writable root and no shell."""

from __future__ import annotations

import hashlib
import posixpath
from typing import Any

from shoal.api.pod_autoscaling_rules import PodAutoscalingRules
from shoal.data.permissions import POD_AUTOSCALING
from shoal.install.objects.certificates import CERTIFICATE_FOLDER, CERTIFICATE_SECRET, has_issued_certificate
from shoal.install.objects.configuration import CONFIG, OPERATOR_CONFIG
from shoal.install.objects.permissions import ACCOUNT, OPERATOR
from shoal.install.objects.requests import (
    observer_resources,
    operator_resources,
    pod_autoscaling_resources,
    scheduler_resources,
)
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues

Obj = dict[str, Any]
SCHEDULER = "scheduler"
OPERATOR_PART = "operator"
OBSERVER_PART, OBSERVER = "observer", "shoal-observer"
HISTORY_PART, HISTORY = "history", "shoal-history"
"""HISTORY is also the name of the claim, and of the Lease of the process that records."""
HISTORY_FOLDER = "/var/lib/shoal/history"
PRICES_FOLDER, PRICES_KEY = "/etc/shoal-prices", "prices.yaml"
METRICS_SERVICE, METRICS_PORT, WEBHOOK_PORT = "shoal-metrics", 8080, 9443
"""The Service leads to the scheduler's metrics."""
WEB, WEB_PORT, WEB_FOLDER = "shoal-web", 8090, "/etc/shoal-web"
"""The pages of the web dashboard, which the process that records the history serves."""
_USER = 65532
_DIGEST = "shoal.dev/config-digest"
_FOLDER = "/etc/shoal"

_OWN_NAMESPACE: Obj = {
    "name": "SHOAL_NAMESPACE",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
}


def image_of(values: ChartValues, version: str) -> str:
    """Shoal's image, with its digest or tag."""
    repository, digest = values.get("image.repository"), values.get("image.digest")
    if digest:
        return f"{repository}@{digest}"
    return f"{repository}:{values.get('image.tag') or version.replace('+', '_')}"


def operator_image_of(values: ChartValues, version: str) -> str:
    name = values.get("operator.image")
    if not name:
        return image_of(values, version)
    repository, tag = values.get("operator.repository"), values.get("operator.version") or version
    whole = f"{repository}/{name}" if repository else name
    return f"{whole}@{tag}" if tag.startswith("sha256:") else f"{whole}:{tag}"


def scheduler_deployment(release: Release, values: ChartValues, config: Obj, nodes: int) -> Obj:
    container = _container(values, image_of(values, release.version), "shoal")
    container["args"] = ["run", "--config", f"{_FOLDER}/{CONFIG}", "--metrics-address", f"0.0.0.0:{METRICS_PORT}"]
    if values.get("metrics.kubeState.enabled"):
        container["args"].append("--kube-state-metrics")
    container["env"] = [_OWN_NAMESPACE]
    container["ports"].append({"name": "webhook", "containerPort": WEBHOOK_PORT, "protocol": "TCP"})
    container["resources"] = values.get("resources") or scheduler_resources(nodes)
    pod = _pod(values, container, ACCOUNT, "shoal-config")
    if has_issued_certificate(values):
        mount = {"name": "certificate", "mountPath": CERTIFICATE_FOLDER, "readOnly": True}
        container["volumeMounts"].append(mount)
        pod["volumes"].append({"name": "certificate", "secret": {"secretName": CERTIFICATE_SECRET}})
    pod["priorityClassName"] = values.get("priorityClassName")
    pod["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": release.selector(SCHEDULER)},
        }
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]
    return _deployment(release, SCHEDULER, "shoal", values.get("replicas"), (pod, config))


def operator_deployment(release: Release, values: ChartValues, config: Obj, nodes: int) -> Obj:
    container = _container(values, operator_image_of(values, release.version), "operator")
    container["args"] = ["run", "--controllers", "operator", "--config", f"{_FOLDER}/{OPERATOR_CONFIG}"]
    container["args"] += ["--metrics-address", f"0.0.0.0:{METRICS_PORT}"]
    container["env"] = [
        {"name": "SHOAL_IMAGE", "value": image_of(values, release.version)},
        {"name": "SHOAL_NODE_DISCOVERY", "value": "true" if values.get("nfd.enabled") else "false"},
        _OWN_NAMESPACE,
    ]
    pulled = _secrets(values.get("imagePullSecrets")).get("imagePullSecrets", [])
    if pulled:
        container["env"].append({"name": "SHOAL_PULL_SECRETS", "value": " ".join(one["name"] for one in pulled)})
    container["resources"] = values.get("operator.resources") or operator_resources(nodes)
    container["imagePullPolicy"] = values.get("operator.imagePullPolicy") or values.get("image.pullPolicy")
    pod = _pod(values, container, OPERATOR, "shoal-operator-config")
    secrets = values.get("operator.imagePullSecrets") or values.get("imagePullSecrets")
    own = {
        name: value for name in ("nodeSelector", "tolerations", "affinity") if (value := values.get(f"operator.{name}"))
    }
    pod |= own | {"priorityClassName": values.get("operator.priorityClassName")} | _secrets(secrets)
    return _deployment(release, OPERATOR_PART, OPERATOR, 1, (pod, config))


def pod_autoscaling_deployment(release: Release, values: ChartValues, config: Obj, nodes: int) -> Obj:
    """One pod, which ends before another one begins: the Service must lead to the process that works."""
    name = f"shoal-{POD_AUTOSCALING}"
    container = _container(values, image_of(values, release.version), POD_AUTOSCALING)
    container["args"] = ["run", "--config", f"{_FOLDER}/{CONFIG}", "--metrics-address", f"0.0.0.0:{METRICS_PORT}"]
    port = PodAutoscalingRules().port
    container["ports"].append({"name": "metrics-apis", "containerPort": port, "protocol": "TCP"})
    container["resources"] = values.get("podAutoscaling.resources") or pod_autoscaling_resources(nodes)
    pod = _pod(values, container, name, f"{name}-config")
    pod["priorityClassName"] = values.get("priorityClassName")
    found = _deployment(release, POD_AUTOSCALING, name, 1, (pod, config))
    found["spec"]["strategy"] = {"type": "Recreate"}
    return found


def observer_deployment(release: Release, values: ChartValues, nodes: int) -> Obj:
    """It has no configuration: what it reads says how Shoal decides."""
    container = _container(values, image_of(values, release.version), OBSERVER_PART)
    container["args"] = ["observe", "--metrics-address", f"0.0.0.0:{METRICS_PORT}"]
    container["args"] += ["--interval", values.get("observe.interval")]
    container["resources"] = values.get("resources") or observer_resources(nodes)
    pod = _pod(values, container, OBSERVER, "")
    pod["priorityClassName"] = values.get("priorityClassName")
    return _deployment(release, OBSERVER_PART, OBSERVER, 1, (pod, {"data": {}}))


def history_deployment(release: Release, values: ChartValues, nodes: int) -> Obj:
    """One pod, which ends before the next one starts: the volume may be for one node, and its file has one writer. It
    has no configuration. The kubelet gives the volume to the group of the program."""
    container = _container(values, image_of(values, release.version), HISTORY_PART)
    container["args"] = ["run", "--controllers", HISTORY_PART, "--history", HISTORY_FOLDER]
    container["args"] += ["--metrics-address", f"0.0.0.0:{METRICS_PORT}", *_history_arguments(release, values)]
    # It holds the same nodes and pods as the scheduler.
    container["resources"] = values.get("resources") or scheduler_resources(nodes)
    pod = _pod(values, container, HISTORY, "")
    # The program makes the folder inside of the volume, so that other users cannot read it.
    container["volumeMounts"].append({"name": "history", "mountPath": posixpath.dirname(HISTORY_FOLDER)})
    claim = values.get("history.existingClaim") or HISTORY
    pod["volumes"].append({"name": "history", "persistentVolumeClaim": {"claimName": claim}})
    if prices := values.get("history.pricesConfigMap"):
        container["volumeMounts"].append({"name": "prices", "mountPath": PRICES_FOLDER, "readOnly": True})
        pod["volumes"].append({"name": "prices", "configMap": {"name": prices}})
    if values.get("web.enabled"):
        container["ports"].append({"name": "web", "containerPort": WEB_PORT, "protocol": "TCP"})
    if secret := values.get("web.tlsSecret"):
        container["volumeMounts"].append({"name": "web", "mountPath": WEB_FOLDER, "readOnly": True})
        pod["volumes"].append({"name": "web", "secret": {"secretName": secret}})
    pod["securityContext"] |= {"fsGroup": _USER, "fsGroupChangePolicy": "OnRootMismatch"}
    pod["priorityClassName"] = values.get("priorityClassName")
    deployment = _deployment(release, HISTORY_PART, HISTORY, 1, (pod, {"data": {}}))
    deployment["spec"]["strategy"] = {"type": "Recreate"}
    return deployment


def _history_arguments(release: Release, values: ChartValues) -> list[str]:
    """The order is that of the chart."""
    found = []
    if retention := values.get("history.retention"):
        found += ["--history-retention", retention]
    if values.get("history.pricesConfigMap"):
        found += ["--prices", f"{PRICES_FOLDER}/{PRICES_KEY}"]
    if values.get("alerts.enabled"):
        found += [word for target in values.get("alerts.to") for word in ("--alerts-to", target)]
        # The figures of queues and of scheduling are those of another process.
        found += ["--alerts-scrape", f"http://{METRICS_SERVICE}.{release.namespace}.svc:{METRICS_PORT}/metrics"]
    if values.get("web.enabled"):
        found += ["--web-address", f"0.0.0.0:{WEB_PORT}"]
        if values.get("web.tlsSecret"):
            found += ["--web-tls-cert-file", f"{WEB_FOLDER}/tls.crt", "--web-tls-key-file", f"{WEB_FOLDER}/tls.key"]
        found += [word for proxy in values.get("web.trustedProxies") for word in ("--web-proxy", proxy)]
    return found


def _deployment(release: Release, part: str, name: str, replicas: int, pod_and_config: tuple[Obj, Obj]) -> Obj:
    pod, config = pod_and_config
    digest = hashlib.sha256(repr(sorted(config["data"].items())).encode()).hexdigest()[:16]
    meta = {"labels": release.selector(part), "annotations": {_DIGEST: digest}}
    spec = {
        "replicas": replicas,
        "revisionHistoryLimit": 3,
        "selector": {"matchLabels": release.selector(part)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": {"metadata": meta, "spec": pod},
    }
    own = {"name": name, "namespace": release.namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": own, "spec": spec}


def _container(values: ChartValues, image: str, name: str) -> Obj:
    probe = {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6}
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": values.get("image.pullPolicy"),
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}],
        "livenessProbe": {"httpGet": {"path": "/livez", "port": "metrics"}, **probe},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "metrics"}, **probe},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": _FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - in the container
        ],
    }


def _pod(values: ChartValues, container: Obj, account: str, config: str) -> Obj:
    pod: Obj = {
        "serviceAccountName": account,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": config}}, {"name": "tmp", "emptyDir": {}}],
    }
    if not config:
        pod["volumes"] = pod["volumes"][1:]
        container["volumeMounts"] = container["volumeMounts"][1:]
    for name in ("nodeSelector", "tolerations", "affinity"):
        if values.get(name):
            pod[name] = values.get(name)
    return pod | _secrets(values.get("imagePullSecrets"))


def _secrets(names: list[Any]) -> Obj:
    """Names, or objects with a name as Kubernetes writes them."""
    found = [one if isinstance(one, dict) else {"name": str(one)} for one in names]
    return {"imagePullSecrets": found} if found else {}
