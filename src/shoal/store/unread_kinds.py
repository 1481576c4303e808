"""Lists kinds that are often among manifests and that no decision depends on. None of them creates pods.

Any other kind that is not read is reported with its place, because it may be a typing error.
"""

from __future__ import annotations

from collections.abc import Mapping

_CORE = "ConfigMap Endpoints Event PodTemplate Secret Service ServiceAccount"
_KINDS_BY_GROUP: Mapping[str, str] = {
    "": _CORE,
    "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingWebhookConfiguration ValidatingAdmissionPolicy "
    "MutatingAdmissionPolicyBinding ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "apps": "ControllerRevision",
    "autoscaling": "HorizontalPodAutoscaler",
    "autoscaling.x-k8s.io": "CapacityBuffer ProvisioningRequest",
    "autoscaling.k8s.io": "VerticalPodAutoscaler",
    "cert-manager.io": "Certificate ClusterIssuer Issuer",
    "certificates.k8s.io": "CertificateSigningRequest",
    "coordination.k8s.io": "Lease",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "gateway.networking.k8s.io": "Gateway GatewayClass GRPCRoute HTTPRoute",
    "karpenter.azure.com": "AKSNodeClass",
    "karpenter.k8s.aws": "EC2NodeClass",
    "karpenter.k8s.gcp": "GCENodeClass",
    "karpenter.sh": "NodeClaim NodeOverlay NodePool",
    "keda.sh": "ClusterTriggerAuthentication ScaledObject TriggerAuthentication",
    "kustomize.config.k8s.io": "Component Kustomization",
    "monitoring.coreos.com": "AlertmanagerConfig PodMonitor Probe PrometheusRule ServiceMonitor",
    "networking.k8s.io": "Ingress IngressClass NetworkPolicy",
    "nvidia.com": "ClusterPolicy NVIDIADriver",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "snapshot.storage.k8s.io": "VolumeSnapshot VolumeSnapshotClass",
    "storage.k8s.io": "CSIDriver CSINode CSIStorageCapacity VolumeAttributesClass",
}
_KINDS = {(group, kind) for group, kinds in _KINDS_BY_GROUP.items() for kind in kinds.split()}


def has_no_part_in_decisions(api_version: str, kind: str) -> bool:
    group = api_version.rpartition("/")[0]
    return (group, kind) in _KINDS
