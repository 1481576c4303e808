"""The options of Shoal's own parts: image, replicas, configuration, network, definitions."""

from __future__ import annotations

from shoal.install.bundle import SMOKE_TEST_IMAGE
from shoal.install.values.option import FREE, Option


def _own(path: str, default: object, about: str) -> Option:
    return Option(path, default, about, None)


SHOAL_OPTIONS: tuple[Option, ...] = (
    _own("image.repository", "shoal", "Shoal's image, with its registry."),
    _own("image.tag", "", "The tag; empty means the version of this release."),
    _own("image.digest", "", "A digest, sha256:..., in place of the tag."),
    _own("image.pullPolicy", "IfNotPresent", "When the image is pulled."),
    _own("imagePullSecrets", [], "Names of Secrets with credentials of the registry."),
    _own("replicas", 2, "Pods of the Deployment shoal; one of them is active."),
    _own("controllers", [], "The parts of shoal run; empty means all."),
    _own("config", FREE, "Fields of the ShoalConfiguration: policy, preemption, schedulerNames and others."),
    _own("managerConfig.controllerManagerConfigYaml", "", "Kueue's Configuration, by the name of Kueue's chart."),
    _own("resources", FREE, "Resource requests and limits; empty means by the number of nodes."),
    _own("priorityClassName", "system-cluster-critical", "The priority class of Shoal's pods."),
    _own("nodeSelector", FREE, "The nodes of Shoal's pods."),
    _own("tolerations", [], "Tolerations of Shoal's pods."),
    _own("affinity", FREE, "The affinity of Shoal's pods."),
    _own("podDisruptionBudget.enabled", True, "Keep one of several replicas during drains."),
    _own("networkPolicies.enabled", True, "Allow only the connections that Shoal's pods need."),
    _own("observe.enabled", False, "Install only the observer: it may read, explains what waits, and decides nothing."),
    _own("observe.interval", "60s", "The time between two readings of the observer."),
    _own("history.enabled", False, "Record which pod held which GPU, for shoal cost: one more process, with a volume."),
    _own("history.size", "5Gi", "The size of its volume; the file is bounded by 2 GB."),
    _own("history.storageClass", "", "The StorageClass of its volume; empty means the default one of the cluster."),
    _own("history.accessMode", "ReadWriteOnce", "The access mode of its volume."),
    _own("history.existingClaim", "", "A PersistentVolumeClaim of yours for its volume; none is created then."),
    _own("history.pricesConfigMap", "", "A ConfigMap in Shoal's namespace whose key prices.yaml is the price file."),
    _own("history.retention", "", "How long it keeps what: raw=2d,5m=90d,1h=730d,ledger=730d,size=2G."),
    _own("alerts.enabled", False, "Evaluate alerts without Prometheus, in the process that records the history."),
    _own("alerts.to", ["events"], "Where alerts go: events, alertmanager=URL, webhook=URL."),
    _own("web.enabled", False, "Serve the web dashboard, in the process that records the history: Service shoal-web."),
    _own(
        "web.tlsSecret", "", "A Secret with tls.crt and tls.key, for HTTPS; empty means HTTP, for a proxy with HTTPS."
    ),
    _own("web.trustedProxies", [], "Addresses or networks of proxies whose X-Forwarded-Proto is believed."),
    _own("webhook.enabled", True, "Create the Service shoal-webhook: for older Kubernetes and Kueue's versions."),
    _own("webhook.certificates", "shoal", "Who creates and renews the certificate of the webhook."),
    _own("webhook.issuerRef", FREE, "With cert-manager: the issuer, as name and kind; empty means a self-signed one."),
    _own(
        "podAutoscaling.enabled",
        False,
        "Run KEDA's ScaledObjects, scale model servers, and serve custom and external metrics; not beside KEDA.",
    ),
    _own("podAutoscaling.resources", FREE, "Resource requests and limits of that Deployment."),
    _own("metrics.serviceMonitor.enabled", False, "Create a ServiceMonitor for Shoal's own metrics."),
    _own("metrics.serviceMonitor.interval", "30s", "Its interval."),
    _own("metrics.kubeState.enabled", False, "Serve the series of kube-state-metrics where it is not installed."),
    _own("crds.projects", ["gpu-operator", "kueue"], "Projects whose definitions are installed if they are missing."),
    _own("smokeTest.enabled", True, "Run a pod with a GPU after the installation."),
    _own("smokeTest.image", SMOKE_TEST_IMAGE, "The image of that pod."),
    _own("labels", FREE, "Further labels of all objects."),
)
