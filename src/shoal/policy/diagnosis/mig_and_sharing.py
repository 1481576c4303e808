"""Why a node does not have the MIG layout or the number of shared GPUs that was asked for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.data.gpus import read_product
from shoal.devices.labelled_config import fallback_key, is_plugin_config
from shoal.devices.mig_config import MigConfigError, parse_mig_config
from shoal.devices.mig_layouts import default_layouts
from shoal.devices.plugin_config import PluginConfig, parse_plugin_config
from shoal.devices.plugin_resources import PluginConfigError
from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import (
    GPU,
    DiagnosedCluster,
    allocatable,
    condition,
    event_words,
    few,
    labels_of,
    name_of,
    named,
    text_of,
)
from shoal.policy.diagnosis.gpu_stack import app_pods
from shoal.policy.diagnosis.pending_pods import has_gpus
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict, shell_command
from shoal.policy.fields import dig, string_keys
from shoal.policy.kinds import CLUSTER_POLICY, CONFIG_MAP, POD
from shoal.units.near_texts import meant_words
from shoal.units.numbers import whole_of

MIG_CONFIG, MIG_STATE, MIG_CAPABLE = "nvidia.com/mig.config", "nvidia.com/mig.config.state", "nvidia.com/mig.capable"
PLUGIN_CONFIG, GPU_COUNT = "nvidia.com/device-plugin.config", "nvidia.com/gpu.count"
PRODUCT = "nvidia.com/gpu.product"
_MANAGERS = ("nvidia-mig-manager", "mig-manager", "shoal-agent", "agent")
_RESET_MODELS = ("A100", "A30")
"""Models whose MIG mode changes only with a reset, for which all clients have to end."""


def mig_layout(facts: DiagnosedCluster, node: Obj) -> Iterator[Verdict]:
    subject, labels = named(node), labels_of(node)
    wanted, state = labels.get(MIG_CONFIG), labels.get(MIG_STATE)
    if not wanted or not has_gpus(node):
        return
    if state == "success":
        managers = app_pods(facts, node, _MANAGERS)
        if managers and not any(condition(pod, "Ready").get("status") == "True" for pod in managers):
            why = f"{named(managers[0])} is not ready, so {MIG_STATE} may tell of an earlier layout"
            yield NotRun(subject, f"whether the MIG layout {wanted} is applied", why)
        else:
            yield RuledOut(subject, f"the MIG layout {wanted} is applied")
        return
    if labels.get(MIG_CAPABLE) == "false":
        what = f"the GPUs of the node do not support MIG, and the layout {wanted} is asked for"
        command = shell_command("kubectl label node {} {}", name_of(node), f"{MIG_CONFIG}-")
        yield FoundCause("MigNotSupported", subject, what, "remove the label", (f"{MIG_CAPABLE}=false",), (command,))
        return
    known = _layouts(facts, labels)
    evidence = [f"{MIG_CONFIG}={wanted}, {MIG_STATE}={state or 'not set'}"]
    if known and wanted not in known and (wanted.startswith("all-") or facts.is_known(CONFIG_MAP)):
        what = f"the GPUs of the node have no MIG layout {wanted}{meant_words(wanted, known)}"
        fix = f"use one of {few(sorted(known), 8)}, or add the layout to the ConfigMap of the MIG manager"
        yield FoundCause(
            "UnknownMigLayout",
            subject,
            what,
            fix,
            tuple(evidence),
            (shell_command("kubectl label node {} {} --overwrite", name_of(node), f"{MIG_CONFIG}=NAME"),),
        )
        return
    holders = [pod for pod in facts.holders(name_of(node)) if dig(pod, "status", "phase") != "Pending"]
    if holders:
        names = [named(pod) for pod in holders]
        needs = " (its MIG mode changes only with a reset)" if _is_reset_model(labels) else ""
        what = f"pods use GPUs of the node, so the layout {wanted} cannot be applied{needs}"
        fix = "end or move the pods; the MIG manager does not evict them. Then set the label again"
        commands = (
            shell_command("kubectl drain {} --ignore-daemonsets --delete-emptydir-data", name_of(node)),
            shell_command("kubectl label node {} {} --overwrite", name_of(node), f"{MIG_CONFIG}={wanted}"),
            shell_command("kubectl uncordon {}", name_of(node)),
        )
        yield FoundCause("MigGpuInUse", subject, what, fix, (*evidence, f"clients: {few(names, 8)}"), commands)
        return
    if facts.is_known(POD) and not state and not app_pods(facts, node, _MANAGERS):
        what = "no MIG manager runs on the node"
        fix = "enable migManager in the ClusterPolicy, or run shoal agent mig"
        yield FoundCause(
            "MigManagerMissing",
            subject,
            what,
            fix,
            tuple(evidence),
            ("kubectl get pods -A -l app=nvidia-mig-manager -o wide",),
        )
        return
    if state in ("pending", "rebooting"):
        yield NotRun(
            subject,
            f"whether the MIG layout {wanted} is applied",
            f"the change is in progress ({state}); repeat this later",
        )
        return
    if not facts.is_known(POD):
        yield NotRun(subject, "which pods use the GPUs", facts.why_unknown(POD))
    evidence += [event_words(event) for event in facts.events(node)[-2:]]
    what = f"the MIG manager could not apply the layout {wanted}, and no pod holds a GPU of the node"
    fix = (
        "read its log; other clients are DCGM, a monitoring agent or an X server. Restart the node where a reset waits"
    )
    looking = (
        "kubectl logs -n gpu-operator -l app=nvidia-mig-manager --tail=100",
        "nvidia-smi --query-gpu=mig.mode.current,mig.mode.pending --format=csv",
    )
    yield FoundCause("MigChangeFailed", subject, what, fix, tuple(evidence), looking)


def _is_reset_model(labels: dict[str, str]) -> bool:
    return any(model in labels.get(PRODUCT, "") for model in _RESET_MODELS)


def _layouts(facts: DiagnosedCluster, labels: dict[str, str]) -> set[str]:
    """Of all ConfigMaps, and those that every MIG manager has for this model; empty if the model is not known."""
    model = read_product(labels.get(PRODUCT, "")).model
    if model is None or not model.mig:
        return set()
    found = set(default_layouts(model.mig))
    for config in facts.all(CONFIG_MAP):
        for text in string_keys(config.get("data")).values():
            if isinstance(text, str) and "mig-configs" in text:
                try:
                    found |= parse_mig_config(text).keys()
                except MigConfigError:
                    continue
    return found


def time_slicing(facts: DiagnosedCluster, node: Obj) -> Iterator[Verdict]:
    """Why the number of shared GPUs is not what a configuration says."""
    subject, labels = named(node), labels_of(node)
    if not has_gpus(node):
        return
    configs = _plugin_configs(facts)
    label, policy = labels.get(PLUGIN_CONFIG), _policy_config(facts)
    if not configs and not label and not policy:
        if not facts.is_known(CONFIG_MAP):
            yield NotRun(subject, "the sharing of its GPUs", facts.why_unknown(CONFIG_MAP))
        return
    if not configs and not facts.is_known(CONFIG_MAP):
        yield NotRun(subject, "the sharing of its GPUs", facts.why_unknown(CONFIG_MAP))
        return
    name = str(policy.get("name") or "") if policy is not None else ""
    if policy is not None and name not in configs:
        yield _unreferenced(subject, name, configs)
        return
    data = configs[name] if name else next(iter(configs.values()), {})
    key = label or (
        str(policy.get("default") or "") if policy is not None else fallback_key(list(data), ("named", "single"))
    )
    if not key:
        what = "no configuration applies to the node: the policy names no default, and the node has no label"
        fix = f"set devicePlugin.config.default, or label the node with one of {few(sorted(data))}"
        pair = f"{PLUGIN_CONFIG}={next(iter(sorted(data)), 'KEY')}"
        commands = (shell_command("kubectl label node {} {}", name_of(node), pair),)
        yield FoundCause(
            "NoPluginConfigSelected", subject, what, fix, (f"the label {PLUGIN_CONFIG} is not set",), commands
        )
        return
    if key not in data:
        what = f"the configuration {key} does not exist{meant_words(key, data)}"
        fix = f"the ConfigMap has the keys {few(sorted(data))}; label the node with one of them"
        yield FoundCause(
            "UnknownPluginConfig",
            subject,
            what,
            fix,
            (f"{PLUGIN_CONFIG}={label or key}",),
            (shell_command("kubectl label node {} {} --overwrite", name_of(node), f"{PLUGIN_CONFIG}=KEY"),),
        )
        return
    try:
        config = parse_plugin_config(data[key], "none")
    except PluginConfigError as error:
        what = f"the device plugin refuses the configuration {key}"
        yield FoundCause(
            "PluginConfigInvalid",
            subject,
            what,
            "correct the ConfigMap; shoal lint names the field",
            (text_of(error),),
            ("kubectl get configmaps -A -o yaml | shoal lint -",),
        )
        return
    yield from _count(node, config, key)


def _count(node: Obj, config: PluginConfig, key: str) -> Iterator[Verdict]:
    subject, count = named(node), whole_of(labels_of(node).get(GPU_COUNT, ""))
    if config.replicas_of(GPU) < 2:
        return
    if count is None:
        yield NotRun(subject, "the number of shared GPUs", f"the node has no label {GPU_COUNT}")
        return
    resource, expected = config.name_of(GPU), count * config.replicas_of(GPU)
    found = allocatable(node).get(resource, 0)
    if found == expected:
        yield RuledOut(subject, f"{found} {resource}, as the configuration {key} says")
        return
    if found > count > 0:
        what = f"some of the shared GPUs are unhealthy or of an older configuration: {found} of {expected} {resource}"
    else:
        what = f"the device plugin has not read its configuration: {found} instead of {expected} {resource}"
    fix = "restart the device plugin; it reads a changed ConfigMap only when it starts, or when the label changes"
    command = "kubectl rollout restart daemonset -n gpu-operator nvidia-device-plugin-daemonset"
    yield FoundCause(
        "PluginNotRestarted",
        subject,
        what,
        fix,
        (f"configuration {key}: {config.replicas_of(GPU)} replicas of {count} GPUs",),
        (command,),
    )


def _unreferenced(subject: str, name: str, configs: dict[str, dict[str, str]]) -> FoundCause:
    if not name:
        what = "the ClusterPolicy names no ConfigMap for the device plugin, so the one that exists has no effect"
    else:
        what = (
            f"the ConfigMap {name} that the ClusterPolicy names has no plugin configuration{meant_words(name, configs)}"
        )
    config = next(iter(configs), "NAME")
    chosen = {"name": config, "default": "KEY"}
    patch = msgspec.json.encode({"spec": {"devicePlugin": {"config": chosen}}}).decode()
    fix = "set devicePlugin.config.name and devicePlugin.config.default"
    evidence = (f"ConfigMaps with a plugin configuration: {few(sorted(configs)) or 'none'}",)
    return FoundCause(
        "PluginConfigNotNamed",
        subject,
        what,
        fix,
        evidence,
        (shell_command("kubectl patch clusterpolicies cluster-policy --type merge -p {}", patch),),
    )


def _plugin_configs(facts: DiagnosedCluster) -> dict[str, dict[str, str]]:
    """Texts by key, by the name of the ConfigMap; only those that configure the plugin."""
    found = {}
    for config in facts.all(CONFIG_MAP):
        data = {key: text for key, text in string_keys(config.get("data")).items() if _is_sharing(text)}
        if data:
            found[name_of(config)] = data
    return found


def _is_sharing(text: object) -> bool:
    return (
        isinstance(text, str)
        and is_plugin_config(text)
        and ("sharing" in text or "timeSlicing" in text or "flags" in text)
    )


def _policy_config(facts: DiagnosedCluster) -> Obj | None:
    """The settings of the first ClusterPolicy; None without one."""
    policy = next(iter(facts.all(CLUSTER_POLICY)), None)
    return None if policy is None else string_keys(dig(policy, "spec", "devicePlugin", "config"))
