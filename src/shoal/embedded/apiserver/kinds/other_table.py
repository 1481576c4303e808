"""Lists the strategies of all built-in resources except pods, nodes and workloads, which are in `table.py`."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.embedded.apiserver.crds.definition_strategy import DefinitionStrategy
from shoal.embedded.apiserver.kinds.admission.bindings import PolicyBindingStrategy
from shoal.embedded.apiserver.kinds.admission.policies import MutatingPolicyStrategy, ValidatingPolicyStrategy
from shoal.embedded.apiserver.kinds.admission.webhooks import WebhookStrategy
from shoal.embedded.apiserver.kinds.apiregistration.services import APIServiceStrategy
from shoal.embedded.apiserver.kinds.certificates.requests import RequestStrategy
from shoal.embedded.apiserver.kinds.coordination.leases import LeaseStrategy
from shoal.embedded.apiserver.kinds.core.accounts import ServiceAccountStrategy
from shoal.embedded.apiserver.kinds.core.endpoints import EndpointsStrategy
from shoal.embedded.apiserver.kinds.core.events import EventStrategy
from shoal.embedded.apiserver.kinds.core.limit_ranges import LimitRangeStrategy
from shoal.embedded.apiserver.kinds.core.namespaces import NamespaceStrategy
from shoal.embedded.apiserver.kinds.core.quotas import QuotaStrategy
from shoal.embedded.apiserver.kinds.core.services import ServiceStrategy
from shoal.embedded.apiserver.kinds.core.stored_data import ConfigMapStrategy, SecretStrategy
from shoal.embedded.apiserver.kinds.core.volume_claims import VolumeClaimStrategy
from shoal.embedded.apiserver.kinds.core.volumes import VolumeStrategy
from shoal.embedded.apiserver.kinds.discovery.slices import EndpointSliceStrategy
from shoal.embedded.apiserver.kinds.flowcontrol.flows import FlowSchemaStrategy
from shoal.embedded.apiserver.kinds.flowcontrol.levels import PriorityLevelStrategy
from shoal.embedded.apiserver.kinds.networking.ingresses import IngressClassStrategy, IngressStrategy
from shoal.embedded.apiserver.kinds.networking.policies import NetworkPolicyStrategy
from shoal.embedded.apiserver.kinds.networking.ranges import IPAddressStrategy, ServiceRangeStrategy
from shoal.embedded.apiserver.kinds.node.runtime_classes import RuntimeClassStrategy
from shoal.embedded.apiserver.kinds.rbac.bindings import BindingStrategy
from shoal.embedded.apiserver.kinds.rbac.roles import RoleStrategy
from shoal.embedded.apiserver.kinds.resource.claims import ClaimStrategy, ClaimTemplateStrategy
from shoal.embedded.apiserver.kinds.resource.classes import DeviceClassStrategy
from shoal.embedded.apiserver.kinds.resource.slices import ResourceSliceStrategy
from shoal.embedded.apiserver.kinds.scheduling.priority_classes import PriorityClassStrategy
from shoal.embedded.apiserver.kinds.storage.attachments import AttachmentStrategy
from shoal.embedded.apiserver.kinds.storage.classes import AttributesClassStrategy, StorageClassStrategy
from shoal.embedded.apiserver.kinds.storage.drivers import CapacityStrategy, DriverNodeStrategy, DriverStrategy
from shoal.embedded.apiserver.strategy import Strategy


class ComponentStatusStrategy(Strategy):
    """Nothing is written; readers get a deprecation warning."""

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
