"""Checks ConfigMaps with configurations of kube-scheduler, which are often copied from other clusters."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from shoal.api.decode import Unknown
from shoal.api.meta import ObjectMeta
from shoal.api.scheduler_config import scheduler_config
from shoal.api.scheduler_plugins import DEFAULTS
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.config_map_data import configurations
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import CONFIG_MAP
from shoal.units.errors import UserError, Where
from shoal.units.near_texts import is_typo, meant_words

_GROUP = "kubescheduler.config.k8s.io/"
_NOW = _GROUP + "v1"
_KIND, _FIT = "KubeSchedulerConfiguration", "NodeResourcesFit"
_UNKNOWN, _SUPPORTED = "unknown field", "supported values are "
_LIKENESS = 0.85
_REFUSED = "kube-scheduler refuses a field or a value of its configuration, or does not know a plugin"
_FIELDS = (
    *("profiles", "schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore", "extenders", "parallelism"),
    *(
        "enabled",
        "disabled",
        "name",
        "weight",
        "args",
        "scoringStrategy",
        "type",
        "resources",
        "requestedToCapacityRatio",
    ),
    *("multiPoint", "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve"),
    *("permit", "preBind", "bind", "postBind", "leaderElection", "clientConnection", "defaultConstraints", "shape"),
)


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
        "InvalidSchedulerConfig": _REFUSED,
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
        "SHL-908",
        "InvalidSchedulerConfig",
        "error",
        fault=_REFUSED,
        effect="the scheduler does not start",
        fix="write the field, value or plugin as the message says",
        links=("https://kubernetes.io/docs/reference/scheduling/config/",),
        bad="""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packing
  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocatd}}}]
""",
        changes=(Change("MostAllocatd", "MostAllocated"),),
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
    yield from _refused(here, read)
    for at, profile in enumerate(maps(read.get("profiles"))):
        yield from _plugins(f"{here}profiles[{at}]", profile)
        for plugin in maps(profile.get("pluginConfig")):
            if plugin.get("name") == _FIT and dig(plugin, "args", "scoringStrategy", "type") == "LeastAllocated":
                name = profile.get("schedulerName") or "default-scheduler"
                yield Advice(
                    "Spreads",
                    f"{here}profiles[{at}]",
                    f"profile {name} spreads pods over the emptiest nodes, which leaves few whole GPU nodes free",
                    "write MostAllocated to fill nodes",
                )


def _refused(here: str, read: Obj) -> Iterator[Advice]:
    """What kube-scheduler refuses first; old versions have a rule of their own."""
    try:
        scheduler_config(Unknown(str(read.get("apiVersion")), _KIND, ObjectMeta(), read), Where())
    except UserError as error:
        path = error.where.path if error.where is not None else ""
        if path in ("apiVersion", "profiles"):
            # Without profiles kube-scheduler takes its own.
            return
        name, supported = path.rpartition(".")[2], error.fix.removeprefix(_SUPPORTED)
        values = supported.split(", ") if supported != error.fix else []
        written = error.what.partition('"')[2].rpartition('"')[0]
        meant = meant_words(written, values) if values else meant_words(name, _FIELDS) if _UNKNOWN in error.what else ""
        fix = error.fix or "write a field of KubeSchedulerConfiguration"
        yield Advice("InvalidSchedulerConfig", f"{here}{path}", f"{error.what}{meant}", fix)


def _plugins(here: str, profile: Obj) -> Iterator[Advice]:
    """Plugins of other projects are possible, so only names that resemble one of kube-scheduler are reported."""
    known = {name for name, _, _ in DEFAULTS}
    named = [
        (f"{here}.plugins.{point}.{field}[{at}].name", plugin.get("name"))
        for point, plugins in string_keys(profile.get("plugins")).items()
        for field in ("enabled", "disabled")
        for at, plugin in enumerate(maps(dig(plugins, field)))
    ]
    named += [
        (f"{here}.pluginConfig[{at}].name", plugin.get("name"))
        for at, plugin in enumerate(maps(profile.get("pluginConfig")))
    ]
    for path, name in named:
        near = difflib.get_close_matches(str(name), sorted(known), 1, _LIKENESS)
        if isinstance(name, str) and near and _is_misspelled(name, near[0]):
            what = f"kube-scheduler has no plugin {name}; did you mean {near[0]}?"
            yield Advice("InvalidSchedulerConfig", path, what, "write the name of a plugin")


def _is_misspelled(name: str, known: str) -> bool:
    """A plugin whose name is longer by a word at either end, such as NodeResourcesFitPlus, is one of its own."""
    short, long = sorted((name, known), key=len)
    return is_typo(name, known) and not long.startswith(short) and not long.endswith(short)
