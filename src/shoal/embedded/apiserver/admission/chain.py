"""The built-in admission plugins, in the order in which Kubernetes runs them.

`mutate` comes before policies and webhooks that change objects, `validate` after everything that changes them. Quota
is separate (`AdmissionChain.quota`): it is charged last, under the quota's lock, and committed with the object.

Which plugins look at a kind of request is worked out once and kept, so a pod passes only those that want pods.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.embedded.apiserver.admission.certificates import CertificateSubjectRestriction, RequestingUser
from shoal.embedded.apiserver.admission.defaults import default_ingress_class, default_storage_class
from shoal.embedded.apiserver.admission.device_admin_access import DeviceAdminAccess
from shoal.embedded.apiserver.admission.limit_ranger import LimitRanger
from shoal.embedded.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from shoal.embedded.apiserver.admission.nodes import TaintNodesByCondition
from shoal.embedded.apiserver.admission.plugin import AdmissionPlugin
from shoal.embedded.apiserver.admission.pod_security.plugin import PodSecurity
from shoal.embedded.apiserver.admission.priority import Priority
from shoal.embedded.apiserver.admission.quota.plugin import Quota
from shoal.embedded.apiserver.admission.runtime_class import RuntimeClass
from shoal.embedded.apiserver.admission.service_account import ServiceAccount, suffixes
from shoal.embedded.apiserver.admission.storage import PersistentVolumeClaimResize, StorageObjectInUseProtection
from shoal.embedded.apiserver.admission.tolerations import DefaultTolerationSeconds
from shoal.embedded.apiserver.admission.topology_labels import PodTopologyLabels
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.resource import Resource

Step = Callable[[AdmissionAttributes], None]
_Steps = tuple[tuple[Step, ...], tuple[Step, ...]]


class AdmissionChain:
    """All built-in plugins as one, and quota beside them."""

    def __init__(self, plugins: tuple[AdmissionPlugin, ...], quota: Quota) -> None:
        self._plugins = plugins
        self.quota = quota
        self._steps: dict[tuple[str, Resource, str], _Steps] = {}

    def mutate(self, admission: AdmissionAttributes) -> None:
        for step in self._for(admission)[0]:
            step(admission)

    def validate(self, admission: AdmissionAttributes) -> None:
        for step in self._for(admission)[1]:
            step(admission)

    def _for(self, admission: AdmissionAttributes) -> _Steps:
        call = admission.call
        key = (admission.operation, call.resource, call.subresource)
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._work_out(*key)
        return found

    def _work_out(self, operation: str, resource: Resource, subresource: str) -> _Steps:
        chosen = [one for one in self._plugins if one.wants(operation, resource, subresource)]
        changing = tuple(one.mutate for one in chosen if type(one).mutate is not AdmissionPlugin.mutate)
        refusing = tuple(one.validate for one in chosen if type(one).validate is not AdmissionPlugin.validate)
        return changing, refusing


def builtin_plugins(
    reader: Reader, suffix: Callable[[], str] | None = None, node_restriction: AdmissionPlugin | None = None
) -> AdmissionChain:
    """`suffix` names token volumes; the default one is the same after every start. Where rights are not looked at,
    nodes are not restricted either."""
    return AdmissionChain(
        (
            NamespaceLifecycle(reader),
            LimitRanger(reader),
            ServiceAccount(reader, suffix or suffixes()),
            node_restriction or AdmissionPlugin(),
            TaintNodesByCondition(),
            PodSecurity(reader),
            Priority(reader),
            DefaultTolerationSeconds(),
            default_storage_class(reader),
            StorageObjectInUseProtection(),
            PersistentVolumeClaimResize(reader),
            RuntimeClass(reader),
            RequestingUser(),
            CertificateSubjectRestriction(),
            default_ingress_class(reader),
            PodTopologyLabels(reader),
            DeviceAdminAccess(reader),
        ),
        Quota(reader),
    )
