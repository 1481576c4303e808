"""Checks what scales pods and nodes: HorizontalPodAutoscalers, ScaledObjects of KEDA, NodePools of Karpenter, and the
priorities of Cluster Autoscaler.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.data.gpus import PRODUCT_LABEL, is_short_product, meant_products
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.config_map_data import configurations
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys, strings
from shoal.policy.gpu_metrics import METRICS, SERVER_METRICS
from shoal.policy.kinds import AUTOSCALER, CONFIG_MAP, MISPLACED_SCALED_OBJECT, NODE_POOL, SCALED_OBJECT, GroupKind
from shoal.policy.object_set import is_advised, kind_of
from shoal.units.numbers import whole_of

_RENAMED = {**SERVER_METRICS, **METRICS}
_KEDA, _KARPENTER = "keda.sh", "karpenter.sh/v1"
_EXPANDER = "cluster-autoscaler-priority-expander"
_UNDERUTILIZED = "WhenUnderutilized"


@check(
    Rule(
        "SHL-702",
        "NoTargetVersion",
        "error",
        fault="scaleTargetRef has no apiVersion",
        effect="the autoscaler does not find its target",
        fix="write apiVersion: apps/v1",
        at_admission="warning",
        bad="""\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: serve}
spec: {maxReplicas: 4, scaleTargetRef: {kind: Deployment, name: serve}}
""",
        changes=(Change("{kind: Deployment", "{apiVersion: apps/v1, kind: Deployment"),),
    ),
    also={"OldMetricName": "a metric has a name that its exporter does not use"},
    kinds=(AUTOSCALER,),
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


@check(
    Rule(
        "SHL-703",
        "SeveralAutoscalers",
        "error",
        fault="several autoscalers change the replicas of one object",
        effect="they change the replicas against each other",
        fix="write one ScaledObject with all triggers",
        at_admission="warning",
        bad="""\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: by-load}
spec: {scaleTargetRef: {name: serve}, triggers: [{type: cpu, metadata: {value: "60"}}]}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: by-memory}
spec: {scaleTargetRef: {name: serve}, triggers: [{type: memory, metadata: {value: "60"}}]}
""",
        changes=(Change("{name: serve}, triggers: [{type: memory", "{name: other}, triggers: [{type: memory"),),
    ),
    kinds=(AUTOSCALER, SCALED_OBJECT, MISPLACED_SCALED_OBJECT),
)
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


@check(
    Rule(
        "SHL-105",
        "MisplacedGroup",
        "error",
        fault="the object has the group of another project, where no controller looks for it",
        effect="no controller watches the group, so nothing happens",
        fix="write the group of the project",
        bad="""\
apiVersion: autoscaling.keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: serve}
spec: {scaleTargetRef: {name: serve}, triggers: [{type: cpu, metadata: {value: "60"}}]}
""",
        changes=(Change("autoscaling.keda.sh", "keda.sh"),),
    ),
    kinds=(MISPLACED_SCALED_OBJECT,),
)
def misplaced_scaled_objects(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    group, version = str(obj.get("apiVersion") or "").partition("/")[::2]
    if group != _KEDA:
        what = f"KEDA reads ScaledObjects of {_KEDA} only; no project publishes {group}"
        yield Advice("MisplacedGroup", "apiVersion", what, f"write {_KEDA}/{version}")


@check(
    Rule(
        "SHL-104",
        "OldFieldName",
        "warning",
        fault="a field has the name of an older version",
        effect="the field is dropped or refused by current releases",
        fix="write the field of the current version",
        links=("https://karpenter.sh/docs/concepts/disruption/",),
        bad="""\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpus}
spec:
  disruption: {consolidationPolicy: WhenUnderutilized}
  template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}
""",
        changes=(Change("WhenUnderutilized", "WhenEmptyOrUnderutilized"),),
    ),
    Rule(
        "SHL-704",
        "NoNodeClass",
        "error",
        fault="a NodePool does not name its node class completely",
        effect="Karpenter refuses the NodePool",
        fix="name group, kind and name of the node class",
        links=("https://karpenter.sh/docs/concepts/nodepools/",),
        bad="""\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpus}
spec: {template: {spec: {nodeClassRef: {name: default}}}}
""",
        changes=(Change("{name: default}", "{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}"),),
    ),
    Rule(
        "SHL-705",
        "NotAnInstanceAttribute",
        "warning",
        fault="a requirement is no attribute by which the cloud's instance types are chosen",
        effect="Karpenter does not choose instance types by it",
        fix="write an attribute of instance types, such as karpenter.k8s.aws/instance-gpu-name",
        links=("https://karpenter.sh/docs/concepts/nodepools/",),
        bad="""\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpus}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-L40S]}]
""",
        changes=(
            Change(
                "nvidia.com/gpu.product, operator: In, values: [NVIDIA-L40S]",
                "karpenter.k8s.aws/instance-gpu-name, operator: In, values: [l40s]",
            ),
        ),
    ),
    Rule(
        "SHL-706",
        "TaintWithoutValue",
        "warning",
        fault="a GPU taint has no value, so tolerations for a value do not match it",
        effect="pods that tolerate a value do not tolerate the taint",
        fix="write value: present, or use tolerations with operator Exists",
        links=("https://karpenter.sh/docs/concepts/nodepools/",),
        bad="""\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpus}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
""",
        changes=(Change("gpu, effect", "gpu, value: present, effect"),),
    ),
    also={
        "OldVersion": "the version is not supported any more",
        "UnknownProductName": "nvidia.com/gpu.product is compared with a name that no driver reports",
    },
    kinds=(NODE_POOL,),
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


@check(
    Rule(
        "SHL-707",
        "HighestNumberWins",
        "warning",
        fault="the priority expander prefers spot node groups",
        effect="spot groups are chosen first",
        fix="exchange the numbers if on-demand groups should come first",
        bad="""\
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-autoscaler-priority-expander, namespace: kube-system}
data:
  priorities: |
    10: [.*-ondemand.*]
    50: [.*-spot.*]
""",
        changes=(Change("50:", "5:"),),
    ),
    kinds=(CONFIG_MAP,),
    options=CheckOptions(hints=(b"cluster-autoscaler-priority-expander",)),
)
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
