"""Configurations of kube-scheduler that lie in ConfigMaps, where much copied manifests leave them."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.yaml_text import read_yaml
from shoal.controllers.advising.advice import Advice
from shoal.controllers.advising.around import Around, dig, maps, named
from shoal.store.live.item import Obj
from shoal.units.errors import UserError

_GROUP = "kubescheduler.config.k8s.io/"
_NOW = _GROUP + "v1"
_FIT = "NodeResourcesFit"


def scheduler_configurations(obj: Obj, _: Around) -> Iterator[Advice]:
    for key, text in named(obj.get("data")).items():
        if not isinstance(text, str) or _GROUP not in text or "KubeSchedulerConfiguration" not in text:
            continue
        here = f"data[{key}]"
        read = _read(text)
        if read.get("kind") != "KubeSchedulerConfiguration":
            continue
        yield Advice(
            "NotAScheduler",
            here,
            "a scheduler's configuration in a ConfigMap changes no scheduler by itself",
            "give the file to `shoal run --config`, or to the scheduler that is to read it",
        )
        if read.get("apiVersion") != _NOW:
            what = f"{read.get('apiVersion')} is not read any more since Kubernetes 1.29; taken as {_NOW}"
            yield Advice("OldVersion", f"{here}.apiVersion", what, f"write {_NOW}")
        for at, profile in enumerate(maps(read.get("profiles"))):
            for plugin in maps(profile.get("pluginConfig")):
                if plugin.get("name") == _FIT and dig(plugin, "args", "scoringStrategy", "type") == "LeastAllocated":
                    name = profile.get("schedulerName") or "default-scheduler"
                    yield Advice(
                        "Spreads",
                        f"{here}.profiles[{at}]",
                        f"profile {name} spreads pods over the emptiest nodes, which leaves few whole GPU nodes free",
                        "write MostAllocated to fill nodes",
                    )


def _read(text: str) -> Obj:
    """Nothing where it is no YAML, which is not said here: who reads it will."""
    try:
        return named(next((found for _, found in read_yaml(text)), None))
    except UserError:
        return {}
