"""Which built-in resource behaves how: all but pods, nodes and workloads, which stand in `table.py`."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.cluster.crds.definition import DefinitionStrategy
from shoal.cluster.kinds.admission.bindings import PolicyBindingStrategy
from shoal.cluster.kinds.admission.policies import MutatingPolicyStrategy, ValidatingPolicyStrategy
from shoal.cluster.kinds.admission.webhooks import WebhookStrategy
from shoal.cluster.kinds.apiregistration.services import APIServiceStrategy
from shoal.cluster.kinds.certificates.requests import RequestStrategy
from shoal.cluster.kinds.coordination.leases import LeaseStrategy
from shoal.cluster.kinds.core.accounts import ServiceAccountStrategy
from shoal.cluster.kinds.core.endpoints import EndpointsStrategy
from shoal.cluster.kinds.core.events import EventStrategy
from shoal.cluster.kinds.core.limit_ranges import LimitRangeStrategy
from shoal.cluster.kinds.core.namespaces import NamespaceStrategy
from shoal.cluster.kinds.core.quotas import QuotaStrategy
from shoal.cluster.kinds.core.services import ServiceStrategy
from shoal.cluster.kinds.core.stored_data import ConfigMapStrategy, SecretStrategy
from shoal.cluster.kinds.core.volume_claims import VolumeClaimStrategy
from shoal.cluster.kinds.core.volumes import VolumeStrategy
from shoal.cluster.kinds.discovery.slices import EndpointSliceStrategy
from shoal.cluster.kinds.flowcontrol.flows import FlowSchemaStrategy
from shoal.cluster.kinds.flowcontrol.levels import PriorityLevelStrategy
from shoal.cluster.kinds.networking.ingresses import IngressClassStrategy, IngressStrategy
from shoal.cluster.kinds.networking.policies import NetworkPolicyStrategy
from shoal.cluster.kinds.networking.ranges import IPAddressStrategy, ServiceRangeStrategy
from shoal.cluster.kinds.node.runtime_classes import RuntimeClassStrategy
from shoal.cluster.kinds.rbac.bindings import BindingStrategy
from shoal.cluster.kinds.rbac.roles import RoleStrategy
from shoal.cluster.kinds.resource.claims import ClaimStrategy, ClaimTemplateStrategy
from shoal.cluster.kinds.resource.classes import DeviceClassStrategy
from shoal.cluster.kinds.resource.slices import ResourceSliceStrategy
from shoal.cluster.kinds.scheduling.priority_classes import PriorityClassStrategy
from shoal.cluster.kinds.storage.attachments import AttachmentStrategy
from shoal.cluster.kinds.storage.classes import AttributesClassStrategy, StorageClassStrategy
from shoal.cluster.kinds.storage.drivers import CapacityStrategy, DriverNodeStrategy, DriverStrategy
from shoal.cluster.strategy import Strategy


class ComponentStatusStrategy(Strategy):
    """Nothing is written; readers are told that it is deprecated."""

    deprecation = "v1 ComponentStatus is deprecated in v1.19+"


_ADMISSION = "admissionregistration.k8s.io"
_DEVICES = "resource.k8s.io"
_FLOWS = "flowcontrol.apiserver.k8s.io"
_NETWORK = "networking.k8s.io"
_RIGHTS = "rbac.authorization.k8s.io"
_STORAGE = "storage.k8s.io"

OTHER_STRATEGIES: Mapping[tuple[str, str], Strategy] = {
    ("", "componentstatuses"): ComponentStatusStrategy(),
    ("", "configmaps"): ConfigMapStrategy(),
    ("", "endpoints"): EndpointsStrategy(),
    ("", "events"): EventStrategy(),
    ("", "limitranges"): LimitRangeStrategy(),
    ("", "namespaces"): NamespaceStrategy(),
    ("", "persistentvolumeclaims"): VolumeClaimStrategy(),
    ("", "persistentvolumes"): VolumeStrategy(),
    ("", "resourcequotas"): QuotaStrategy(),
    ("", "secrets"): SecretStrategy(),
    ("", "serviceaccounts"): ServiceAccountStrategy(),
    ("", "services"): ServiceStrategy(),
    (_ADMISSION, "mutatingadmissionpolicies"): MutatingPolicyStrategy(),
    (_ADMISSION, "mutatingadmissionpolicybindings"): PolicyBindingStrategy(mutates=True),
    (_ADMISSION, "mutatingwebhookconfigurations"): WebhookStrategy(mutates=True),
    (_ADMISSION, "validatingadmissionpolicies"): ValidatingPolicyStrategy(),
    (_ADMISSION, "validatingadmissionpolicybindings"): PolicyBindingStrategy(),
    (_ADMISSION, "validatingwebhookconfigurations"): WebhookStrategy(),
    ("apiextensions.k8s.io", "customresourcedefinitions"): DefinitionStrategy(),
    ("apiregistration.k8s.io", "apiservices"): APIServiceStrategy(),
    ("certificates.k8s.io", "certificatesigningrequests"): RequestStrategy(),
    ("coordination.k8s.io", "leases"): LeaseStrategy(),
    ("discovery.k8s.io", "endpointslices"): EndpointSliceStrategy(),
    ("events.k8s.io", "events"): EventStrategy(is_newer=True),
    (_FLOWS, "flowschemas"): FlowSchemaStrategy(),
    (_FLOWS, "prioritylevelconfigurations"): PriorityLevelStrategy(),
    (_NETWORK, "ingressclasses"): IngressClassStrategy(),
    (_NETWORK, "ingresses"): IngressStrategy(),
    (_NETWORK, "ipaddresses"): IPAddressStrategy(),
    (_NETWORK, "networkpolicies"): NetworkPolicyStrategy(),
    (_NETWORK, "servicecidrs"): ServiceRangeStrategy(),
    ("node.k8s.io", "runtimeclasses"): RuntimeClassStrategy(),
    (_RIGHTS, "clusterrolebindings"): BindingStrategy(is_namespaced=False),
    (_RIGHTS, "clusterroles"): RoleStrategy(is_namespaced=False),
    (_RIGHTS, "rolebindings"): BindingStrategy(is_namespaced=True),
    (_RIGHTS, "roles"): RoleStrategy(is_namespaced=True),
    (_DEVICES, "deviceclasses"): DeviceClassStrategy(),
    (_DEVICES, "resourceclaims"): ClaimStrategy(),
    (_DEVICES, "resourceclaimtemplates"): ClaimTemplateStrategy(),
    (_DEVICES, "resourceslices"): ResourceSliceStrategy(),
    ("scheduling.k8s.io", "priorityclasses"): PriorityClassStrategy(),
    (_STORAGE, "csidrivers"): DriverStrategy(),
    (_STORAGE, "csinodes"): DriverNodeStrategy(),
    (_STORAGE, "csistoragecapacities"): CapacityStrategy(),
    (_STORAGE, "storageclasses"): StorageClassStrategy(),
    (_STORAGE, "volumeattachments"): AttachmentStrategy(),
    (_STORAGE, "volumeattributesclasses"): AttributesClassStrategy(),
}
