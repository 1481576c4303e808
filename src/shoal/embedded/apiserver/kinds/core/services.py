"""Services: what is filled in, and how the fields that say the same thing twice are kept together.

The cluster address itself needs to know all other Services; `cluster_addresses.allocate` gives it, after validation and
under the lock of the operations.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.embedded.apiserver.field_errors import FieldError
from shoal.embedded.apiserver.kinds.addresses import family
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj
from shoal.embedded.apiserver.kinds.core.cluster_addresses import (
    needs_health_port,
    needs_node_ports,
    unallocatable_port,
)
from shoal.embedded.apiserver.kinds.core.service_checks import check_service, check_service_update, check_status
from shoal.embedded.apiserver.names import label_fault
from shoal.embedded.apiserver.strategy import Strategy

_HEADLESS = "None"
_STICKY_S = 10800
_BALANCER = ("allocateLoadBalancerNodePorts", "loadBalancerClass")


class ServiceStrategy(Strategy):
    has_status = True
    counts_generation = False
    creates_on_update = True
    returns_deleted = True

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
        if spec["sessionAffinity"] == "None":
            spec.pop("sessionAffinityConfig", None)
        elif spec["sessionAffinity"] == "ClientIP":
            sticky = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
            if sticky.get("timeoutSeconds") is None:
                spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _STICKY_S}}
        kind = spec["type"] = spec.get("type") or "ClusterIP"
        for port in spec.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port", 0)
        if is_reached_from_outside(spec) and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        status = obj.setdefault("status", {})
        balancer = status.setdefault("loadBalancer", {})
        if kind == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in balancer.get("ingress") or ():
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def prepare_create(self, obj: Obj) -> None:
        obj["status"] = {"loadBalancer": {}}
        spec = obj["spec"]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        _settle_families(spec, {})

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        spec, before = new["spec"], old["spec"]
        _take_over(spec, before)
        _pair_addresses(spec, before)
        _drop_unneeded(spec, before)
        _settle_families(spec, before)

    def validate(self, obj: Obj) -> list[FieldError]:
        """An error of allocation is reported alone, because Kubernetes allocates before it validates anything else."""
        errors = unallocatable_port(obj["spec"], {})
        if not errors:
            check_service(obj, errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = unallocatable_port(new["spec"], old["spec"])
        if not errors:
            check_service_update(new, old, errors)
            check_service(new, errors)
        return errors

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:  # noqa: ARG002 - the signature is the strategy's
        return service_warnings(new["spec"])

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        errors: Errors = []
        check_status(new, errors)
        return errors

    def name_fault(self, name: str, is_prefix: bool) -> str:
        return label_fault(name, is_prefix)

    def fields(self, obj: Obj) -> Mapping[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}

    def selectable(self) -> tuple[str, ...]:
        return ("spec.clusterIP", "spec.type")


def service_warnings(spec: Obj) -> list[str]:
    """What is written and has no effect, or will have none."""
    kind, outside = spec.get("type"), spec.get("externalIPs")
    found: list[str] = []
    if kind == "ClusterIP" and spec.get("clusterIP") == _HEADLESS:
        given = {"loadBalancerIP": spec.get("loadBalancerIP"), "externalIPs": outside}
        given["SessionAffinity"] = spec.get("sessionAffinity") not in (None, "None")
        found += [f"spec.{key} is ignored for headless services" for key, value in given.items() if value]
    elif outside and kind != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if kind == "ExternalName" and outside:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def is_reached_from_outside(spec: Obj) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def _settle_families(spec: Obj, before: Obj) -> None:
    """The cluster has IPv4 only; a headless Service without a selector may name any family all the same."""
    if spec.get("type") == "ExternalName":
        return
    is_free = spec.get("clusterIP") == _HEADLESS and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or ("RequireDualStack" if is_free else "SingleStack")
    families = list(spec.get("ipFamilies") or ())
    for place, one in enumerate(spec.get("clusterIPs") or ()):
        if place >= len(families) and (found := family(one)):
            families.append(found)
    families = families or ["IPv4"]
    if is_free and len(families) == 1 and spec["ipFamilyPolicy"] != "SingleStack":
        families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    spec["ipFamilies"] = families


def _take_over(spec: Obj, before: Obj) -> None:
    """A writer who leaves out what was allocated keeps it."""
    if before.get("type") != "ExternalName" and spec.get("type") != "ExternalName":
        if not spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIP"] = before.get("clusterIP", "")
        if not spec.get("clusterIPs") and spec.get("clusterIP") == before.get("clusterIP"):
            spec["clusterIPs"] = before.get("clusterIPs") or []
    if needs_node_ports(before) and needs_node_ports(spec):
        known = {(one.get("protocol"), one.get("port")): one.get("nodePort") for one in before.get("ports") or ()}
        used = {one.get("nodePort") for one in spec.get("ports") or ()}
        for port in spec.get("ports") or ():
            number = known.get((port.get("protocol"), port.get("port")))
            if number and not port.get("nodePort") and number not in used:
                port["nodePort"] = number
    if needs_health_port(before) and needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort", 0)


def _pair_addresses(spec: Obj, before: Obj) -> None:
    """Old clients know clusterIP, new ones clusterIPs too; a change of one of them applies to both."""
    one, all_of_them = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if all_of_them != (before.get("clusterIPs") or []):
        return
    if not one and before.get("clusterIP"):
        spec.pop("clusterIPs", None)
    elif one != before.get("clusterIP", ""):
        spec["clusterIPs"] = [one]


def _drop_unneeded(spec: Obj, before: Obj) -> None:
    """What belonged to the former type goes with it, unless the writer asked for it anew."""

    def drop(*keys: str) -> None:
        for key in keys:
            if key in spec and spec[key] == before.get(key):
                del spec[key]

    if before.get("type") != "ExternalName" and spec.get("type") == "ExternalName":
        drop("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    has_ports = spec.get("type") in ("NodePort", "LoadBalancer")
    if before.get("type") in ("NodePort", "LoadBalancer") and not has_ports:
        former = [one.get("nodePort") for one in before.get("ports") or ()]
        if [one.get("nodePort") for one in spec.get("ports") or ()] == former:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if needs_health_port(before) and not needs_health_port(spec):
        drop("healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        drop(*_BALANCER)
    if is_reached_from_outside(before) and not is_reached_from_outside(spec):
        drop("externalTrafficPolicy")
