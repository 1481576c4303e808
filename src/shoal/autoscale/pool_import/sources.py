"""Reads node groups: commands of eksctl and gcloud, ClusterConfigs of eksctl, and the flags of Cluster Autoscaler.

The priorities of Cluster Autoscaler's priority expander become the weights of its groups' pools.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from shoal.api.priority_expander import CONFIG_MAP, KEY, Priorities, priorities_of
from shoal.autoscale.expanders.expanders import priority_of
from shoal.autoscale.pool_import.flags import Flags, checked_size, labels_of, taints_of_text
from shoal.autoscale.pool_import.node_group import ImportedPools, NodeGroup, node_pool, warnings_of
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.numbers import whole_of

Raw = Mapping[str, Any]

_GCLOUD_SWITCHES: Final = frozenset(
    {"spot", "preemptible", "enable-autoscaling", "enable-autoupgrade", "quiet", "async"}
)
_EKSCTL_SWITCHES: Final = frozenset({"spot", "managed", "ssh-access", "node-private-networking", "asg-access"})
_LEFT_ALONE: Final = frozenset(
    {
        "cluster",
        "zone",
        "region",
        "project",
        "location",
        "v",
        "profile",
        "disk-size",
        "disk-type",
        "image-type",
        "quiet",
    }
)
"""Flags that are about the cluster or its node class."""
_OF_THE_PROCESS: Final = frozenset(
    {
        *("address", "cloud-config", "cloud-provider", "cluster-name", "kubeconfig", "kubernetes", "leader-elect"),
        *("log-file", "logtostderr", "alsologtostderr", "namespace", "profiling", "stderrthreshold", "v", "vmodule"),
    }
)
"""Flags of Cluster Autoscaler that say nothing about node groups."""
_MOST_WEIGHT: Final = 100


def pools_of(commands: Iterable[Sequence[str]], documents: Iterable[Raw]) -> ImportedPools:
    """`commands`: words of command lines. `documents`: ClusterConfigs, or workloads that run Cluster Autoscaler."""
    groups: list[NodeGroup] = []
    warnings: list[str] = []
    listed = list(documents)
    priorities = next((_priorities(raw) for raw in listed if _is_of_expander(raw)), None)
    for words in commands:
        _add_command(words, groups, warnings, priorities)
    for raw in listed:
        if raw.get("kind") == "ClusterConfig":
            groups += _of_cluster_config(raw)
        elif not _is_of_expander(raw):
            for words in _autoscaler_commands(raw):
                _add_command(words, groups, warnings, priorities)
    names = [group.name for group in groups]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"two node groups are called {twice}", fix="rename one of them: a NodePool needs its own name")
    found = [warning for group in groups for warning in warnings_of(group)]
    return ImportedPools(tuple(map(node_pool, groups)), (*warnings, *found))


def command_lines(text: str) -> list[list[str]]:
    """The commands of a script, one a line; a backslash at its end continues a line."""
    joined = text.replace("\\\n", " ")
    lines = (line.strip() for line in joined.splitlines())
    try:
        return [shlex.split(line, comments=True) for line in lines if line and not line.startswith("#")]
    except ValueError as error:
        raise UserError(f"a command cannot be read: {error}") from error


def _is_of_expander(raw: Raw) -> bool:
    return raw.get("kind") == "ConfigMap" and (raw.get("metadata") or {}).get("name") == CONFIG_MAP


def _priorities(raw: Raw) -> Priorities:
    try:
        return priorities_of(str((raw.get("data") or {}).get(KEY, "")))
    except UserError as error:
        raise error.at(Where(obj=f"ConfigMap {CONFIG_MAP}", path=f"data.{KEY}")) from error


def _add_command(
    words: Sequence[str], groups: list[NodeGroup], warnings: list[str], priorities: Priorities | None
) -> None:
    listed = list(words)
    if listed[:1] == ["gcloud"] and "node-pools" in listed:
        groups.append(_of_gcloud(listed[listed.index("node-pools") + 1 :], warnings))
    elif listed[:1] == ["eksctl"] and "nodegroup" in listed:
        groups.append(_of_eksctl(listed[listed.index("nodegroup") + 1 :], warnings))
    elif any(word.lstrip("-").startswith("nodes=") for word in listed) or any(
        word.endswith("cluster-autoscaler") for word in listed[:1]
    ):
        groups += _of_autoscaler(listed, warnings, priorities)
    else:
        raise UserError(
            f"{excerpt(' '.join(listed))} creates no node group",
            fix="use eksctl create nodegroup, gcloud container node-pools create, or cluster-autoscaler --nodes=...",
        )


def _of_gcloud(words: Sequence[str], warnings: list[str]) -> NodeGroup:
    flags = Flags(words, _GCLOUD_SWITCHES)
    names = [word for word in flags.words if word != "create"]
    if not names:
        raise UserError("gcloud container node-pools create has no name")
    name = names[0]
    zones = tuple(filter(None, flags.text("node-locations").split(","))) or tuple(filter(None, [flags.text("zone")]))
    most = flags.number("max-nodes", "total-max-nodes") if flags.is_on("enable-autoscaling") else None
    least = flags.number("min-nodes", "total-min-nodes") if flags.is_on("enable-autoscaling") else None
    fixed = flags.number("num-nodes")
    if most is None and fixed is not None:
        least, most = fixed, fixed
    # The bounds of gcloud hold in each zone, unless they are those of all zones together.
    per_zone = max(len(zones), 1) if flags.text("max-nodes") or most == fixed else 1
    least, most = checked_size(name, least, most)
    flags.all("accelerator", "machine-type", "node-labels", "node-taints", "spot", "preemptible")
    _tell_unused(name, flags, warnings)
    return NodeGroup(
        name=name,
        provider="gcp",
        instance_types=tuple(filter(None, [flags.text("machine-type")])),
        zones=zones,
        is_spot=flags.is_on("spot") or flags.is_on("preemptible"),
        least=least * per_zone,
        most=None if most is None else most * per_zone,
        labels=labels_of(flags.text("node-labels")),
        taints=tuple(taints_of_text(flags.text("node-taints"))),
    )


def _of_eksctl(words: Sequence[str], warnings: list[str]) -> NodeGroup:
    flags = Flags(words, _EKSCTL_SWITCHES)
    name = flags.text("name", "n") or next(iter(flags.words), "")
    if not name:
        raise UserError("eksctl create nodegroup has no --name")
    fixed = flags.number("nodes", "N")
    least, most = flags.number("nodes-min", "m"), flags.number("nodes-max", "M")
    least, most = checked_size(name, fixed if least is None else least, fixed if most is None else most)
    types = flags.text("instance-types") or flags.text("node-type", "t", "instance-type")
    zones = tuple(filter(None, flags.text("node-zones").split(",")))
    is_spot, labels = flags.is_on("spot"), labels_of(flags.text("node-labels"))
    taints = tuple(taints_of_text(flags.text("node-taints", "taints")))
    flags.all("managed")
    _tell_unused(name, flags, warnings)
    chosen = tuple(filter(None, types.split(",")))
    return NodeGroup(name, "aws", chosen, zones, is_spot, least, most, labels, taints)


def _of_cluster_config(raw: Raw) -> list[NodeGroup]:
    listed = [*(raw.get("managedNodeGroups") or ()), *(raw.get("nodeGroups") or ())]
    return [_of_config_group(each) for each in listed]


def _of_config_group(raw: Raw) -> NodeGroup:
    name = str(raw.get("name") or "")
    if not name:
        raise UserError("a node group of the ClusterConfig has no name")
    mixed: Raw = raw.get("instancesDistribution") or {}
    types = raw.get("instanceTypes") or mixed.get("instanceTypes") or [raw.get("instanceType")]
    fixed = raw.get("desiredCapacity")
    least, most = checked_size(name, raw.get("minSize", fixed), raw.get("maxSize", fixed))
    taints = raw.get("taints") or ()
    if isinstance(taints, Mapping):
        taints = taints_of_text(",".join(f"{key}={value}" for key, value in taints.items()))
    is_spot = bool(raw.get("spot")) or mixed.get("onDemandPercentageAboveBaseCapacity") == 0
    return NodeGroup(
        name=name,
        provider="aws",
        instance_types=tuple(str(each) for each in types if each),
        zones=tuple(raw.get("availabilityZones") or ()),
        is_spot=is_spot,
        least=least,
        most=most,
        labels={str(key): str(value) for key, value in (raw.get("labels") or {}).items()},
        taints=tuple({key: str(value) for key, value in taint.items()} for taint in taints),
    )


def _of_autoscaler(words: Sequence[str], warnings: list[str], priorities: Priorities | None) -> list[NodeGroup]:
    flags = Flags(words)
    after = flags.text("scale-down-unneeded-time") or "10m"
    if flags.text("scale-down-enabled") == "false":
        after = "Never"
    groups = []
    expanders = flags.text("expander").split(",")
    weights: dict[str, int] = {}
    if expanders[0] == "priority" and priorities is not None:
        weights = _weights([each.split(":", 2)[-1] for each in flags.all("nodes")], priorities)
        expanders = expanders[1:]
    if expanders[:1] == ["priority"]:
        warnings.append(
            f"--expander=priority: give the ConfigMap {CONFIG_MAP} with -f too, for the weights of the pools"
        )
    elif any(expanders):
        warnings.append(f"--expander={','.join(expanders)} has no equivalent in a NodePool and is left out")
    for each in flags.all("nodes"):
        least, _, rest = each.partition(":")
        most, _, name = rest.partition(":")
        sizes = whole_of(least), whole_of(most)
        if sizes[0] is None or sizes[1] is None or not name:
            raise UserError(f"--nodes={each} is not min:max:name")
        bounds = checked_size(name, *sizes)
        weight = weights.get(name, 0)
        groups.append(
            NodeGroup(_pool_name(name), "", least=bounds[0], most=bounds[1], consolidate_after=after, weight=weight)
        )
    if flags.all("node-group-auto-discovery"):
        warnings.append("--node-group-auto-discovery names no node groups: list them with --nodes=min:max:name")
    warnings += [
        f"--{name} has no equivalent in a NodePool and is left out"
        for name in flags.unused()
        if name not in _OF_THE_PROCESS
    ]
    return groups


def _weights(names: Sequence[str], priorities: Priorities) -> dict[str, int]:
    """The weights of the pools of these groups: their priorities where all can be weights, else their order. A group
    that matches nothing has none, and is used last, as by Cluster Autoscaler.
    """
    found = {name: priority for name in names if (priority := priority_of(name, priorities)) is not None}
    if all(1 <= priority <= _MOST_WEIGHT for priority in found.values()):
        return found
    order = sorted(set(found.values()))
    return {name: min(order.index(priority) + 1, _MOST_WEIGHT) for name, priority in found.items()}


def _pool_name(name: str) -> str:
    """The last part of an address, as a name of an object."""
    last = name.rstrip("/").rpartition("/")[2].lower()
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter == "-") else "-" for letter in last)


def _autoscaler_commands(raw: Raw) -> list[list[str]]:
    template = ((raw.get("spec") or {}).get("template") or {}).get("spec") or {}
    found = []
    for container in template.get("containers") or ():
        words = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
        if any("cluster-autoscaler" in word for word in words) or any(word.startswith("--nodes=") for word in words):
            found.append(words)
    if not found:
        kind, name = raw.get("kind", "object"), (raw.get("metadata") or {}).get("name", "")
        raise UserError(f"{kind} {name} has no node group", fix="use a ClusterConfig, or what runs Cluster Autoscaler")
    return found


def _tell_unused(name: str, flags: Flags, warnings: list[str]) -> None:
    left = [flag for flag in flags.unused() if flag not in _LEFT_ALONE]
    if left:
        listed = ", ".join(f"--{flag}" for flag in left)
        warnings.append(f"node group {name}: {listed} belongs to the node class and is left out")
