"""A new node gets the not-ready taint until it is ready."""

from __future__ import annotations

from shoal.embedded.apiserver.admission.plugin import AdmissionPlugin
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.resource import Resource

NOT_READY = "node.kubernetes.io/not-ready"


class TaintNodesByCondition(AdmissionPlugin):
    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return operation == "CREATE" and resource.home == ("", "nodes") and not subresource

    def mutate(self, admission: AdmissionAttributes) -> None:
        if admission.obj is None:
            return
        spec = admission.obj.get("spec")
        if spec is None:
            spec = admission.obj["spec"] = {}
        taints = spec.get("taints") or []
        if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
