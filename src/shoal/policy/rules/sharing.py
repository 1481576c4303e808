"""Checks the configurations of shared GPUs: of the device plugin, of the MIG manager, and of the GPU operator."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.data.mig import RESOURCE_PREFIX
from shoal.devices.mps_limits import MOST_MPS_CLIENTS
from shoal.devices.plugin_config import started_config
from shoal.devices.plugin_file import plugin_file
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.plugin_resources import PluginConfigError
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.config_map_data import configurations
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import CLUSTER_POLICY, CONFIG_MAP, MISPLACED_CLUSTER_POLICY
from shoal.policy.pod_templates import GPU
from shoal.units.near_texts import nearest_name
from shoal.units.numbers import whole_of

_OPERATOR_GROUP = "nvidia.com"
_DISABLED = "all-disabled"
_LAYOUTS = "mig-configs"
_SHARING = ("timeSlicing", "mps")


@check(
    Rule(
        "SHL-502",
        "ShortForm",
        "error",
        fault="timeSlicing has replicas without resources, which the device plugin rejects",
        effect="the device plugin refuses the configuration",
        fix="write resources with name and replicas",
        bad="""\
version: v1
sharing:
  timeSlicing: {replicas: 4}
""",
        changes=(Change("{replicas: 4}", "{resources: [{name: nvidia.com/gpu, replicas: 4}]}"),),
    ),
    Rule(
        "SHL-504",
        "SharedInstances",
        "info",
        fault="MIG instances are shared by time-slicing, which is not meant for production",
        effect="neither memory nor faults are isolated any more",
        fix="use instances alone in production, or smaller ones",
        bad="""\
version: v1
sharing:
  timeSlicing: {resources: [{name: nvidia.com/mig-1g.10gb, replicas: 2}]}
""",
        changes=(Change("mig-1g.10gb", "gpu"),),
    ),
    Rule(
        "SHL-503",
        "TooManyClients",
        "error",
        fault="MPS has more than 48 replicas of a GPU",
        effect="the device plugin refuses the configuration",
        fix="write at most 48 replicas",
        bad="""\
version: v1
sharing:
  mps: {resources: [{name: nvidia.com/gpu, replicas: 64}]}
""",
        changes=(Change("replicas: 64", "replicas: 16"),),
    ),
    Rule(
        "SHL-510",
        "InvalidConfig",
        "error",
        fault="the device plugin does not start with the configuration, or does not read a part of it",
        effect="the device plugin does not start, or shares nothing",
        fix="correct the configuration as the message says",
        bad="""\
version: v1
sharing:
  timeslicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}
""",
        changes=(Change("timeslicing", "timeSlicing"),),
    ),
    Rule(
        "SHL-501",
        "ExclusiveSharing",
        "error",
        fault="timeSlicing is beside mps, or mps is used for MIG instances",
        effect="the device plugin refuses the configuration",
        fix="share a GPU by one of them, and MIG instances by time-slicing only",
        bad="""\
version: v1
sharing:
  timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}
  mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}
""",
        changes=(
            Change(
                """\
  mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}
""",
                "",
            ),
        ),
    ),
    Rule(
        "SHL-509",
        "NotTheOperatorsNamespace",
        "error",
        fault="a configuration of the GPU operator is in the namespace default",
        effect="the operator does not find the ConfigMap",
        fix="write the namespace of the operator, such as gpu-operator",
        bad="""\
apiVersion: v1
kind: ConfigMap
metadata: {name: sharing, namespace: default}
data:
  any: |
    version: v1
    sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
""",
        changes=(Change("namespace: default", "namespace: gpu-operator"),),
    ),
    kinds=(CONFIG_MAP,),
    options=CheckOptions(hints=(b"sharing:",)),
)
def sharing_configurations(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Checks ConfigMaps with configurations of the device plugin."""
    for here, content in configurations(obj, "sharing"):
        if {"timeSlicing", "mps"} & set(string_keys(content.get("sharing"))) and _is_in_default(obj):
            yield Advice(
                "NotTheOperatorsNamespace",
                "metadata.namespace",
                "the GPU operator reads ConfigMaps of its own namespace, and this one is in default",
                "write the namespace of the operator, such as gpu-operator",
            )
        sharing = string_keys(content.get("sharing"))
        slicing, mps = sharing.get("timeSlicing"), sharing.get("mps")
        strategy = str(dig(content, "flags", "migStrategy") or "")
        if isinstance(slicing, dict):
            yield from _time_slicing(here, slicing, strategy, key=here.partition("[")[2].rstrip("]"))
        if isinstance(mps, dict):
            yield from _mps(f"{here}.sharing", mps, strategy, has_slicing=isinstance(slicing, dict))
        yield from _refused(here, content, slicing, mps)


def _refused(here: str, content: Obj, slicing: object, mps: object) -> Iterator[Advice]:
    """What the plugin refuses at its start; MPS has rules of its own."""
    for key in string_keys(content.get("sharing")):
        near = nearest_name(key, _SHARING)
        if key not in _SHARING and (near or key.lower() in map(str.lower, _SHARING)):
            meant = next(name for name in _SHARING if name.lower() == key.lower() or name == near)
            what = f"the device plugin does not read {key}: nothing is shared"
            yield Advice("InvalidConfig", f"{here}.sharing.{key}", what, f"did you mean {meant}?")
    if not isinstance(slicing, dict) or isinstance(mps, dict):
        return
    try:
        started_config(plugin_file(content), PluginFlags())
    except PluginConfigError as error:
        what = f"the device plugin does not start: {error}"
        yield Advice("InvalidConfig", f"{here}.sharing.timeSlicing", what, "correct the configuration")


def _is_in_default(obj: Obj) -> bool:
    return bool(dig(obj, "metadata", "namespace") == DEFAULT_NAMESPACE)


def _time_slicing(here: str, slicing: Obj, strategy: str, key: str) -> Iterator[Advice]:
    resources, replicas = maps(slicing.get("resources")), slicing.get("replicas")
    field = f"{here}.sharing.timeSlicing"
    if not resources and replicas is not None:
        yield Advice(
            "ShortForm",
            f"{field}.replicas",
            'the device plugin rejects it ("no resources specified"); Shoal\'s simulated nodes read it as replicas of '
            f"{GPU}",
            f"write resources: [{{name: {GPU}, replicas: {replicas}}}]",
        )
    names = [str(one.get("name")) for one in resources]
    if any(name.startswith(RESOURCE_PREFIX) for name in names) or (strategy == "single" and key.startswith("mig-")):
        yield Advice(
            "SharedInstances",
            field,
            "the pods on a MIG instance take turns and share its memory without protection from each other, which is "
            "not meant for production; under the strategy single the shares are named nvidia.com/gpu",
            "use instances alone in production, or smaller ones",
        )


def _mps(here: str, mps: Obj, strategy: str, *, has_slicing: bool) -> Iterator[Advice]:
    if has_slicing:
        what = "is beside timeSlicing: a GPU is shared by one of them"
        yield Advice("ExclusiveSharing", f"{here}.mps", what, "remove one of the two")
    for at, resource in enumerate(maps(mps.get("resources"))):
        replicas = whole_of(str(resource.get("replicas"))) or 0
        if replicas > MOST_MPS_CLIENTS:
            yield Advice(
                "TooManyClients",
                f"{here}.mps.resources[{at}].replicas",
                f"{replicas} is more than the {MOST_MPS_CLIENTS} clients that a GPU can have (16 before Volta): the "
                "device plugin does not start",
                f"write at most {MOST_MPS_CLIENTS}",
            )
        if str(resource.get("name")).startswith(RESOURCE_PREFIX) or strategy == "mixed":
            what = "the device plugin does not support MPS for MIG instances"
            yield Advice(
                "ExclusiveSharing", f"{here}.mps.resources[{at}]", what, "use timeSlicing there, or whole GPUs"
            )


@check(
    Rule(
        "SHL-507",
        "NoDisabledLayout",
        "error",
        fault="a ConfigMap of MIG layouts lacks all-disabled, which the other nodes follow",
        effect="other nodes fail to apply their layout",
        fix="add all-disabled: [{devices: all, mig-enabled: false}]",
        bad="""\
version: v1
mig-configs:
  seven: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]
""",
        changes=(
            Change(
                """\
mig-configs:
""",
                """\
mig-configs:
  all-disabled: [{devices: all, mig-enabled: false}]
""",
            ),
        ),
    ),
    Rule(
        "SHL-508",
        "MixedLayout",
        "info",
        fault="a MIG layout has instances of several sizes on one GPU",
        effect="under the strategy single the plugin advertises no instance of such a GPU",
        fix="give each group of nodes one size, or advertise with the strategy mixed",
        bad="""\
version: v1
mig-configs:
  all-disabled: [{devices: all, mig-enabled: false}]
  both: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 3, 2g.20gb: 2}}]
""",
        changes=(Change("{1g.10gb: 3, 2g.20gb: 2}", "{1g.10gb: 7}"),),
    ),
    kinds=(CONFIG_MAP,),
    options=CheckOptions(hints=(b"mig-configs",)),
)
def mig_layouts(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Checks ConfigMaps of the MIG manager. Such a file replaces the built-in layouts."""
    for here, content in configurations(obj, _LAYOUTS):
        layouts = string_keys(content.get(_LAYOUTS))
        if layouts and _DISABLED not in layouts:
            yield Advice(
                "NoDisabledLayout",
                f"{here}.{_LAYOUTS}",
                f"the MIG manager uses the file instead of its built-in layouts, and only if the ClusterPolicy names "
                f"the ConfigMap under migManager.config.name; {_DISABLED}, the default of other nodes, is missing then",
                f"add {_DISABLED}: [{{devices: all, mig-enabled: false}}]",
            )
        for name, entries in layouts.items():
            for at, entry in enumerate(maps(entries)):
                sizes = [size for size, count in string_keys(entry.get("mig-devices")).items() if count]
                if len(sizes) > 1:
                    yield Advice(
                        "MixedLayout",
                        f"{here}.{_LAYOUTS}.{name}[{at}].mig-devices",
                        f"{' and '.join(sizes)} are on one GPU: slices that one size leaves free are often of no use "
                        "for the other, and the strategy single does not advertise such a node",
                        "give each group of nodes one size, or advertise with the strategy mixed",
                    )


@check(
    Rule(
        "SHL-505",
        "NoDefaultConfig",
        "warning",
        fault="the ClusterPolicy names a configuration and no default, so nodes without a label do not change",
        effect="nodes without a label keep their former configuration",
        fix="add default with a key of the ConfigMap, or label the nodes",
        bad="""\
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec: {devicePlugin: {config: {name: sharing}}}
""",
        changes=(Change("{name: sharing}", "{name: sharing, default: any}"),),
    ),
    Rule(
        "SHL-506",
        "UnknownConfigKey",
        "error",
        fault="the default of a ClusterPolicy is no key of its ConfigMap",
        effect="nodes do not find their configuration",
        fix="name a key of the ConfigMap",
        bad="""\
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec: {devicePlugin: {config: {name: sharing, default: all}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: sharing, namespace: gpu-operator}
data: {any: "version: v1"}
""",
        changes=(Change("default: all", "default: any"),),
    ),
    also={"MisplacedGroup": "the object has the group of another project, where no controller looks for it"},
    kinds=(CLUSTER_POLICY, MISPLACED_CLUSTER_POLICY),
    options=CheckOptions(is_rechecked=True),
)
def cluster_policies(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    group = str(obj.get("apiVersion") or "").partition("/")[0]
    if group != _OPERATOR_GROUP:
        what = f"the GPU operator reads ClusterPolicies of {_OPERATOR_GROUP}/v1 only; {group} has no such kind"
        yield Advice("MisplacedGroup", "apiVersion", what, f"write {_OPERATOR_GROUP}/v1, and the name cluster-policy")
    config = string_keys(dig(obj, "spec", "devicePlugin", "config"))
    name, default = config.get("name"), config.get("default")
    if not name:
        return
    if not default:
        yield Advice(
            "NoDefaultConfig",
            "spec.devicePlugin.config",
            "without a default only nodes with the label nvidia.com/device-plugin.config follow the ConfigMap",
            "add default with a key of the ConfigMap, or label the nodes",
        )
        return
    found = [each for each in context.all(CONFIG_MAP) if dig(each, "metadata", "name") == name]
    keys = sorted({key for each in found for key in string_keys(each.get("data"))})
    if keys and default not in keys:
        what = f"ConfigMap {name} has no key {default}: the device plugin does not start"
        yield Advice("UnknownConfigKey", "spec.devicePlugin.config.default", what, f"its keys are {', '.join(keys)}")
