"""Checks ConfigMaps with configurations of kube-scheduler, which are often copied from other clusters."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext, rule
from shoal.policy.config_map_data import configurations
from shoal.policy.fields import dig, maps

_GROUP = "kubescheduler.config.k8s.io/"
_NOW = _GROUP + "v1"
_KIND, _FIT = "KubeSchedulerConfiguration", "NodeResourcesFit"


@rule(
    NotAScheduler="a ConfigMap with a scheduler configuration changes no scheduler",
    OldVersion="the version is not supported any more",
    Spreads="the scheduler configuration spreads pods over the emptiest nodes",
)
def scheduler_configurations(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for here, read in configurations(obj, _KIND):
        if read.get("kind") != _KIND or not str(read.get("apiVersion")).startswith(_GROUP):
            continue
        yield Advice(
            "NotAScheduler",
            here,
            "a scheduler's configuration in a ConfigMap changes no scheduler by itself",
            "pass the file to `shoal run --config`, or to the scheduler that should use it",
        )
        yield from _configuration(f"{here}.", read)


@rule(
    OldVersion="the version is not supported any more",
    Spreads="the scheduler configuration spreads pods over the emptiest nodes",
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
