"""Identifies the resource of a request. All kinds that Shoal's own code names are defined here.

A `Kind` is a plural in one version of one group, as in a request's path. Kinds that are found at run time only (by the
garbage collector, for example) come from discovery as values of the same type.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    group: str
    version: str
    plural: str
    name: str
    """The value of `kind:`."""
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path below the server's address. An empty `subresource` means the object itself."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.is_namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        parts.extend(part for part in (name, subresource) if part)
        return "/".join(parts)


PODS = Kind("", "v1", "pods", "Pod")
NODES = Kind("", "v1", "nodes", "Node", is_namespaced=False)
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", is_namespaced=False)
SERVICES = Kind("", "v1", "services", "Service")
ENDPOINTS = Kind("", "v1", "endpoints", "Endpoints")
EVENTS = Kind("", "v1", "events", "Event")
POD_TEMPLATES = Kind("", "v1", "podtemplates", "PodTemplate")
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
RESOURCE_QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")
SECRETS = Kind("", "v1", "secrets", "Secret")
SERVICE_ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount")
RESOURCE_QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")
VOLUME_CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Kind("", "v1", "persistentvolumes", "PersistentVolume", is_namespaced=False)
REPLICATION_CONTROLLERS = Kind("", "v1", "replicationcontrollers", "ReplicationController")
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Kind("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = Kind("apps", "v1", "statefulsets", "StatefulSet")
DAEMON_SETS = Kind("apps", "v1", "daemonsets", "DaemonSet")
CONTROLLER_REVISIONS = Kind("apps", "v1", "controllerrevisions", "ControllerRevision")
AUTOSCALERS = Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
JOBS = Kind("batch", "v1", "jobs", "Job")
CRON_JOBS = Kind("batch", "v1", "cronjobs", "CronJob")
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
ENDPOINT_SLICES = Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
DISRUPTION_BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", is_namespaced=False)
STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", is_namespaced=False)
RESOURCE_CLAIMS = Kind("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATES = Kind("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
RESOURCE_SLICES = Kind("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", is_namespaced=False)
DEVICE_CLASSES = Kind("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", is_namespaced=False)
SIGNING_REQUESTS = Kind(
    "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", is_namespaced=False
)
CLUSTER_ROLES = Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", is_namespaced=False)
API_SERVICES = Kind("apiregistration.k8s.io", "v1", "apiservices", "APIService", is_namespaced=False)
DEFINITIONS = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", is_namespaced=False
)
