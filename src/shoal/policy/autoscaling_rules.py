"""Checks what scales pods and nodes: HorizontalPodAutoscalers, ScaledObjects of KEDA, NodePools of Karpenter, and the
priorities of Cluster Autoscaler.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.data.gpus import PRODUCT_LABEL, is_short_product, meant_products
from shoal.policy.advice import Advice, Obj, RuleContext, rule
from shoal.policy.config_map_data import configurations
from shoal.policy.fields import dig, maps, string_keys, strings
from shoal.policy.gpu_metrics import METRICS
from shoal.policy.kinds import AUTOSCALER, MISPLACED_SCALED_OBJECT, SCALED_OBJECT, GroupKind
from shoal.policy.object_set import is_advised, kind_of
from shoal.units.numbers import whole_of

_RENAMED = {"vllm_num_requests_running": "vllm:num_requests_running", **METRICS}
_KEDA, _KARPENTER = "keda.sh", "karpenter.sh/v1"
_EXPANDER = "cluster-autoscaler-priority-expander"
_UNDERUTILIZED = "WhenUnderutilized"


@rule(
    NoTargetVersion="scaleTargetRef has no apiVersion",
    OldMetricName="a metric has a name that its exporter does not use",
)
def autoscaler_targets(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    target = string_keys(dig(obj, "spec", "scaleTargetRef"))
    if target.get("kind") and not target.get("apiVersion"):
        what = f"is missing: the API server rejects it, or finds no {target['kind']} where it accepts it"
        yield Advice("NoTargetVersion", "spec.scaleTargetRef.apiVersion", what, "write apiVersion: apps/v1")
    for at, metric in enumerate(maps(dig(obj, "spec", "metrics"))):
        for source in ("pods", "object", "external"):
            name = dig(metric, source, "metric", "name")
            if isinstance(name, str) and name in _RENAMED:
                what = f"the exporter's name is {_RENAMED[name]}: {name} exists only where an adapter renames it"
                fix = f"write {_RENAMED[name]}, or check the rules of the adapter"
                yield Advice("OldMetricName", f"spec.metrics[{at}].{source}.metric.name", what, fix)


@rule(SeveralAutoscalers="several autoscalers change the replicas of one object")
def several_autoscalers(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """KEDA creates a HorizontalPodAutoscaler for each ScaledObject, so that two of any kind work against each other."""
    target, namespace = _target(obj), str(dig(obj, "metadata", "namespace") or "")
    if target is None:
        return
    itself = (kind_of(obj), dig(obj, "metadata", "name"))
    others = [
        f"{kind.name} {dig(each, 'metadata', 'name')}"
        for kind in _SCALERS
        for each in context.all(kind, namespace)
        if is_advised(each) and (kind, dig(each, "metadata", "name")) != itself and _target(each) == target
    ]
    if others:
        yield Advice(
            "SeveralAutoscalers",
            "spec.scaleTargetRef",
            f"{target[0]} {target[1]} is also scaled by {' and '.join(others)}: they undo each other's changes, and "
            "KEDA rejects a ScaledObject for it",
            "write one ScaledObject with all triggers",
        )


_SCALERS: tuple[GroupKind, ...] = (AUTOSCALER, SCALED_OBJECT, MISPLACED_SCALED_OBJECT)


def _target(obj: Obj) -> tuple[str, str] | None:
    target = string_keys(dig(obj, "spec", "scaleTargetRef"))
    name = target.get("name")
    return (str(target.get("kind") or "Deployment"), str(name)) if name else None


@rule(MisplacedGroup="the object has the group of another project, where no controller looks for it")
def misplaced_scaled_objects(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    group, version = str(obj.get("apiVersion") or "").partition("/")[::2]
    if group != _KEDA:
        what = f"KEDA reads ScaledObjects of {_KEDA} only; no project publishes {group}"
        yield Advice("MisplacedGroup", "apiVersion", what, f"write {_KEDA}/{version}")


@rule(
    OldVersion="the version is not supported any more",
    OldFieldName="a field has the name of an older version",
    NoNodeClass="a NodePool does not name its node class completely",
    NotAnInstanceAttribute="a requirement is no attribute by which the cloud's instance types are chosen",
    UnknownProductName="nvidia.com/gpu.product is compared with a name that no driver reports",
    TaintWithoutValue="a GPU taint has no value, so tolerations for a value do not match it",
)
def node_pools(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    version = str(obj.get("apiVersion") or "")
    if version != _KARPENTER:
        what = f"{version} is not served by current versions of Karpenter"
        yield Advice("OldVersion", "apiVersion", what, f"write {_KARPENTER}, with the fields of that version")
    yield from _old_fields(string_keys(dig(obj, "spec", "disruption")))
    template = string_keys(dig(obj, "spec", "template", "spec"))
    reference = string_keys(template.get("nodeClassRef"))
    missing = [field for field in ("group", "kind", "name") if not reference.get(field)]
    if missing:
        what = f"{', '.join(missing)} of the node class is missing: no node can be created"
        fix = "name group, kind and name, such as karpenter.k8s.aws, EC2NodeClass and default"
        yield Advice("NoNodeClass", "spec.template.spec.nodeClassRef", what, fix)
    for at, one in enumerate(maps(template.get("requirements"))):
        if one.get("key") == PRODUCT_LABEL:
            yield from _product(f"spec.template.spec.requirements[{at}]", strings(one.get("values")))
    for at, taint in enumerate(maps(template.get("taints"))):
        if taint.get("key") == "nvidia.com/gpu" and not taint.get("value"):
            what = "has no value: a toleration with operator Equal and a value, such as present, does not match it"
            fix = "write value: present, as on nodes of other pools, or use tolerations with operator Exists"
            yield Advice("TaintWithoutValue", f"spec.template.spec.taints[{at}]", what, fix)


def _old_fields(disruption: Obj) -> Iterator[Advice]:
    if disruption.get("consolidationPolicy") == _UNDERUTILIZED:
        what = f"{_UNDERUTILIZED} is called WhenEmptyOrUnderutilized in v1"
        yield Advice("OldFieldName", "spec.disruption.consolidationPolicy", what, "write WhenEmptyOrUnderutilized")
    if "expireAfter" in disruption:
        what = "is spec.template.spec.expireAfter in v1"
        yield Advice("OldFieldName", "spec.disruption.expireAfter", what, "move it there")


def _product(here: str, values: list[str]) -> Iterator[Advice]:
    yield Advice(
        "NotAnInstanceAttribute",
        f"{here}.key",
        f"{PRODUCT_LABEL} is set on running nodes only: Karpenter takes it for a label of the user, and chooses no "
        "instance type by it",
        "write an attribute of instance types, such as karpenter.k8s.aws/instance-gpu-name",
    )
    wrong = [value for value in values if is_short_product(value)]
    if wrong:
        meant = " or ".join(dict.fromkeys(name for value in wrong for name in meant_products(value, ())))
        what = f"no driver reports {' or '.join(wrong)}: the names begin with the vendor"
        yield Advice("UnknownProductName", f"{here}.values", what, f"did you mean {meant}?")


@rule(HighestNumberWins="the priority expander prefers spot node groups")
def expander_priorities(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Cluster Autoscaler chooses the node groups with the highest number."""
    if dig(obj, "metadata", "name") != _EXPANDER:
        return
    for here, content in configurations(obj, ":"):
        numbers = {
            number: " ".join(strings(groups))
            for key, groups in content.items()
            if (number := whole_of(key)) is not None
        }
        spot = [number for number, groups in numbers.items() if "spot" in groups]
        demand = [number for number, groups in numbers.items() if "demand" in groups]
        if here == "data[priorities]" and spot and demand and max(spot) > max(demand):
            yield Advice(
                "HighestNumberWins",
                here,
                f"the highest number wins: the spot groups ({max(spot)}) are chosen before the on-demand groups "
                f"({max(demand)})",
                "exchange the numbers if on-demand groups should come first",
            )
