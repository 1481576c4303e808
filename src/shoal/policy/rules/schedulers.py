"""Checks ConfigMaps with configurations of kube-scheduler, which are often copied from other clusters."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.config_map_data import configurations
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps
from shoal.policy.kinds import CONFIG_MAP

_GROUP = "kubescheduler.config.k8s.io/"
_NOW = _GROUP + "v1"
_KIND, _FIT = "KubeSchedulerConfiguration", "NodeResourcesFit"


@check(
    Rule(
        "SHL-906",
        "NotAScheduler",
        "warning",
        fault="a ConfigMap with a scheduler configuration changes no scheduler",
        effect="nothing reads the ConfigMap",
        fix="pass the file to `shoal run --config FILE`, or to the scheduler that should use it",
        links=("https://kubernetes.io/docs/reference/scheduling/config/",),
        bad="""\
apiVersion: v1
kind: ConfigMap
metadata: {name: scheduler}
data:
  config.yaml: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles: [{schedulerName: packing}]
""",
        changes=(
            Change(
                """\
apiVersion: v1
kind: ConfigMap
metadata: {name: scheduler}
data:
  config.yaml: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles: [{schedulerName: packing}]
""",
                """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: packing}]
""",
            ),
        ),
    ),
    also={
        "OldVersion": "the version is not supported any more",
        "Spreads": "the scheduler configuration spreads pods over the emptiest nodes",
    },
    kinds=(CONFIG_MAP,),
    options=CheckOptions(hints=(b"KubeSchedulerConfiguration",)),
)
def scheduler_configurations(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for here, read in configurations(obj, _KIND):
        if read.get("kind") != _KIND or not str(read.get("apiVersion")).startswith(_GROUP):
            continue
        yield Advice(
            "NotAScheduler",
            here,
            "a scheduler's configuration in a ConfigMap changes no scheduler by itself",
            "pass the file to `shoal run --config FILE`, or to the scheduler that should use it",
        )
        yield from _configuration(f"{here}.", read)


@check(
    Rule(
        "SHL-103",
        "OldVersion",
        "error",
        fault="the version is not supported any more",
        effect="current releases do not serve the version, so the object is refused",
        fix="write the current version, with its fields",
        bad="""\
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles: []
""",
        changes=(Change("v1beta3", "v1"),),
    ),
    Rule(
        "SHL-907",
        "Spreads",
        "warning",
        fault="the scheduler configuration spreads pods over the emptiest nodes",
        effect="GPUs become fragmented, and large pods wait",
        fix="write MostAllocated to fill nodes",
        links=("https://kubernetes.io/docs/concepts/scheduling-eviction/resource-bin-packing/",),
        bad="""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packing
  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: LeastAllocated}}}]
""",
        changes=(Change("LeastAllocated", "MostAllocated"),),
    ),
    options=CheckOptions(in_files=True),
)
def scheduler_files(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """A configuration as a file of its own."""
    if obj.get("kind") == _KIND and str(obj.get("apiVersion")).startswith(_GROUP):
        yield from _configuration("", obj)


def _configuration(here: str, read: Obj) -> Iterator[Advice]:
    if read.get("apiVersion") != _NOW:
        what = f"{read.get('apiVersion')} is not supported since Kubernetes 1.29; read as {_NOW}"
        yield Advice("OldVersion", f"{here}apiVersion", what, f"write {_NOW}")
    for at, profile in enumerate(maps(read.get("profiles"))):
        for plugin in maps(profile.get("pluginConfig")):
            if plugin.get("name") == _FIT and dig(plugin, "args", "scoringStrategy", "type") == "LeastAllocated":
                name = profile.get("schedulerName") or "default-scheduler"
                yield Advice(
                    "Spreads",
                    f"{here}profiles[{at}]",
                    f"profile {name} spreads pods over the emptiest nodes, which leaves few whole GPU nodes free",
                    "write MostAllocated to fill nodes",
                )
