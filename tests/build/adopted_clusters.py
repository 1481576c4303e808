"""A cluster with the controllers, webhooks, definitions and Leases of Kueue, as its manifests install them."""

from __future__ import annotations

from typing import Any

from build.small_clusters import SmallCluster
from shoal.client.context import Context
from shoal.client.kind import (
    API_SERVICES,
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    PODS,
    SERVICES,
    Kind,
)
from shoal.client.port import Patch
from shoal.embedded.apiserver.foreign.definitions import definitions_of, tables

Obj = dict[str, Any]
_ADMISSION = "admissionregistration.k8s.io"
VALIDATING = Kind(_ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False)
MUTATING = Kind(_ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False)
SPACE = "kueue-system"
CONTROLLER = "kueue-controller-manager"
LEASE = "c1f6bfd2.kueue.x-k8s.io"
_CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta1
kind: Configuration
manageJobsWithoutQueueName: true
objectRetentionPolicies: {workloads: {afterFinished: 1h}}
integrations:
  frameworks: [batch/job]
  externalFrameworks: [Foo.v1.example.com]
fairSharing: {enable: true}
"""


def service(path: str, space: str = SPACE) -> Obj:
    return {"service": {"namespace": space, "name": "kueue-webhook-service", "path": path}, "caBundle": "Q0E="}


def webhook(name: str, space: str = SPACE, group: str = "kueue.x-k8s.io") -> Obj:
    return {
        "name": name,
        "clientConfig": service("/x", space),
        "rules": [{"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["*"], "resources": ["workloads"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
    }


def webhook_service(pods: dict[str, str], name: str = "kueue-webhook-service", space: str = SPACE) -> Obj:
    """The Service behind `webhook`, for the pods with these labels."""
    ports = [{"port": 443, "targetPort": 9443, "protocol": "TCP"}]
    return {"metadata": {"name": name, "namespace": space}, "spec": {"selector": pods, "ports": ports}}


def deployment(name: str, replicas: int = 1, **meta: Any) -> Obj:
    labels = {"control-plane": name}
    container = {"name": "manager", "image": f"{name}:v1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name, **meta}, "spec": spec}


async def add_kueue(cluster: SmallCluster, *, replicas: int = 2, controller: str = CONTROLLER) -> None:
    """`controller`: the name of its Deployment, with the name of a Helm release before the usual one."""
    await cluster.create(NAMESPACES, {"metadata": {"name": SPACE}}, "")
    for file, table in tables():
        for definition in definitions_of(file, table) if table.project == "kueue" else ():
            if len(definition["spec"]["versions"]) > 1:
                hook = {"conversionReviewVersions": ["v1"], "clientConfig": service("/convert")}
                definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": hook}
            definition["metadata"].pop("labels", None)
            await cluster.create(DEFINITIONS, definition, "")
    await cluster.create(DEPLOYMENTS, deployment(controller, replicas), SPACE)
    await cluster.create(SERVICES, webhook_service({"control-plane": controller}), SPACE)
    await cluster.create(DEPLOYMENTS, deployment("kueueviz", 1), SPACE)
    hooks = [webhook("vworkload.kb.io"), webhook("vother.example.com", "other")]
    await cluster.create(VALIDATING, {"metadata": {"name": "kueue-validating"}, "webhooks": hooks}, "")
    await cluster.create(MUTATING, {"metadata": {"name": "kueue-mutating"}, "webhooks": [webhook("mjob.kb.io")]}, "")
    api = {
        "group": "visibility.kueue.x-k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": SPACE, "name": "kueue-visibility-server", "port": 443},
    }
    await cluster.create(API_SERVICES, {"metadata": {"name": "v1beta1.visibility.kueue.x-k8s.io"}, "spec": api}, "")
    data = {"controller_manager_config.yaml": _CONFIGURATION}
    await cluster.create(CONFIG_MAPS, {"metadata": {"name": "kueue-manager-config"}, "data": data}, SPACE)
    lease = {"holderIdentity": "kueue-1", "leaseDurationSeconds": 15, "leaseTransitions": 0}
    await cluster.create(LEASES, {"metadata": {"name": LEASE}, "spec": lease}, SPACE)
    await cluster.pass_time(2)


class PlayedControllers:
    """Deployments get ready pods, and the conversion of labelled definitions is served by Shoal's webhook."""

    name = "played"

    def __init__(self, context: Context) -> None:
        self._api = context.api
        self._clock = context.clock

    async def run(self) -> None:
        while True:
            for item in (await self._api.list(DEPLOYMENTS)).items:
                obj = item.obj()
                wanted = obj["spec"].get("replicas", 1)
                if (obj.get("status") or {}).get("readyReplicas", 0) != wanted:
                    status = {"status": {"replicas": wanted, "readyReplicas": wanted}}
                    await self._api.patch(DEPLOYMENTS, item.namespace, item.name, Patch("merge", status), "status")
            for item in (await self._api.list(DEFINITIONS)).items:
                await self._convert(item.name, item.obj())
            await self._clock.sleep(1)

    async def _convert(self, name: str, obj: Obj) -> None:
        client = ((obj["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
        found = client.get("service") or {}
        if (obj["metadata"].get("labels") or {}).get("shoal.dev/provided") == "kueue" and found.get("name") not in (
            None,
            "shoal-webhook",
        ):
            ours = {"namespace": "shoal-system", "name": "shoal-webhook", "path": "/convert", "port": 443}
            body = {"spec": {"conversion": {"webhook": {"clientConfig": {"service": ours, "caBundle": "U0g="}}}}}
            await self._api.patch(DEFINITIONS, "", name, Patch("merge", body))


async def add_pod(cluster: SmallCluster, name: str, namespace: str, labels: dict[str, str]) -> None:
    containers = [{"name": "main", "image": "a"}]
    await cluster.create(
        PODS, {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers}}, namespace
    )
