"""Why a node does not advertise its GPUs: the operand pods, the driver, the device plugin, the allocatable amounts and
the labels, in this order. The first broken step is the cause; the steps after it depend on it and are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.taints import HARD_EFFECTS, untolerated
from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import (
    DiagnosedCluster,
    allocatable,
    capacity,
    few,
    labels_of,
    name_of,
    named,
    taints_of,
    text_of,
    tolerations_of,
)
from shoal.policy.diagnosis.log_reading import causes_in
from shoal.policy.diagnosis.pending_pods import PCI_LABEL, PRESENT_LABEL, has_gpus
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict, shell_command
from shoal.policy.fields import dig, maps
from shoal.policy.kinds import DAEMON_SET, POD
from shoal.policy.object_set import key_of

_APPS = ("app", "app.kubernetes.io/name", "app.kubernetes.io/component", "k8s-app", "name")
DRIVER, TOOLKIT = "nvidia-driver-daemonset", "nvidia-container-toolkit-daemonset"
PLUGINS = ("nvidia-device-plugin-daemonset", "nvidia-device-plugin", "nvidia-device-plugin-ds", "shoal-agent", "agent")
DISCOVERY = ("gpu-feature-discovery",)
PRODUCT = "nvidia.com/gpu.product"
_DEPLOY_PLUGIN = "nvidia.com/gpu.deploy.device-plugin"
_DRIVER_LABELS = "nvidia.com/cuda.driver"
_DRIVER_CHECK = "driver-validation"
"""The init container of the toolkit, which waits until a driver answers."""
_OFF = ("false", "paused-for-mig-change", "paused-for-driver-upgrade")


def gpu_stack(facts: DiagnosedCluster, node: Obj) -> Iterator[Verdict]:
    """The five checks of a node with GPUs."""
    subject = named(node)
    if not has_gpus(node):
        yield RuledOut(subject, f"the node has no sign of a GPU: no device, no label {PRESENT_LABEL} or {PCI_LABEL}")
        return
    missing = facts.not_run(subject, "the pods of the GPU stack", POD)
    if missing is not None:
        yield missing
        yield from _amounts(facts, node, is_judged=False)
        return
    pods = facts.pods_on(name_of(node))
    for app, layer in ((DRIVER, "the driver"), (TOOLKIT, "the container toolkit")):
        broken = _broken(facts, _of_app(pods, (app,)), layer, node)
        if broken is not None:
            waits = app == TOOLKIT and _waits_for_driver(_of_app(pods, (app,)))
            yield _without_driver(broken, layer) if waits and not _of_app(pods, (DRIVER,)) else broken
            return
        if _of_app(pods, (app,)):
            yield RuledOut(subject, f"the pod of {layer} is ready")
    plugins = _of_app(pods, PLUGINS)
    if not plugins and not any(allocatable(node).values()):
        yield _missing_plugin(facts, node)
        return
    broken = _broken(facts, plugins, "the device plugin", node)
    if broken is not None:
        lacks = _lacks_driver(pods, node) and broken.id == "PluginNotReady"
        yield _without_driver(broken, "the device plugin") if lacks else broken
        return
    if plugins:
        yield RuledOut(subject, "the pod of the device plugin is ready")
    yield from _amounts(facts, node, is_judged=True)


def _lacks_driver(pods: list[Obj], node: Obj) -> bool:
    """Whether neither a pod nor a label shows a driver."""
    return not _of_app(pods, (DRIVER,)) and not any(key.startswith(_DRIVER_LABELS) for key in labels_of(node))


def _waits_for_driver(pods: list[Obj]) -> bool:
    """Whether the init container that waits for a driver has not ended."""
    return any(
        status.get("name") == _DRIVER_CHECK and dig(status, "state", "terminated", "exitCode") != 0
        for pod in pods
        for status in maps(dig(pod, "status", "initContainerStatuses"))
    )


def _without_driver(broken: FoundCause, layer: str) -> FoundCause:
    what = f"{layer} does not run on the node, and nothing shows a driver there"
    fix = "install the driver on the machine, or let the GPU operator install it (driver.enabled)"
    seen = (*broken.evidence, f"no pod of {DRIVER} is on the node")
    commands = (f"kubectl get pods -A -l app={DRIVER} -o wide", *broken.commands)
    return FoundCause("DriverMissing", broken.subject, what, fix, seen, commands)


def app_pods(facts: DiagnosedCluster, node: Obj, apps: tuple[str, ...]) -> list[Obj]:
    return _of_app(facts.pods_on(name_of(node)), apps)


def _of_app(pods: list[Obj], apps: tuple[str, ...]) -> list[Obj]:
    return [pod for pod in pods if any(labels_of(pod).get(key) in apps for key in _APPS)]


def _amounts(facts: DiagnosedCluster, node: Obj, *, is_judged: bool) -> Iterator[Verdict]:
    subject, usable, total = named(node), allocatable(node), capacity(node)
    if any(usable.values()):
        words = ", ".join(f"{name} {amount}" for name, amount in usable.items())
        yield RuledOut(subject, f"the node advertises {words}")
        if labels_of(node).get(PRODUCT) or not facts.is_known(POD):
            return
        if not app_pods(facts, node, DISCOVERY) and is_judged:
            yield FoundCause(
                "FeatureDiscoveryMissing",
                subject,
                f"the node has no label {PRODUCT}: pods that select a GPU model do not match it",
                "run gpu-feature-discovery on the node, or set the labels",
                ("no pod of gpu-feature-discovery on the node",),
                (shell_command("kubectl get node {} --show-labels", name_of(node)),),
            )
    elif any(total.values()):
        what = "all GPUs of the node are unhealthy: it has devices, and none is allocatable"
        evidence = tuple(f"capacity {name} {amount}, allocatable 0" for name, amount in total.items() if amount)
        commands = ("kubectl logs -n gpu-operator -l app=nvidia-device-plugin-daemonset --tail=50", "dmesg | grep Xid")
        yield FoundCause(
            "AllGpusUnhealthy", subject, what, "find the Xid errors, and reset the GPUs", evidence, commands
        )
    elif is_judged:
        what = "the device plugin runs and reports no GPU"
        fix = "read its log; restart it once the driver works"
        plugins = app_pods(facts, node, PLUGINS)
        yield FoundCause("PluginReportsNoGpus", subject, what, fix, ("allocatable has no device",), _logs(plugins))


def _broken(facts: DiagnosedCluster, pods: list[Obj], layer: str, node: Obj) -> FoundCause | None:
    for pod in pods:
        for status in maps(dig(pod, "status", "containerStatuses")) + maps(dig(pod, "status", "initContainerStatuses")):
            found = _fault(facts, pod, status, layer, node)
            if found is not None:
                return found
        if dig(pod, "status", "phase") == "Pending":
            reason = (
                f"{named(pod)} is pending: {text_of(dig(pod, 'status', 'message')) or 'its containers did not start'}"
            )
            return FoundCause(
                _id(layer), named(node), f"{layer} has not started on the node", "see its pod", (reason,), _logs([pod])
            )
    return None


def _fault(facts: DiagnosedCluster, pod: Obj, status: Obj, layer: str, node: Obj) -> FoundCause | None:
    if status.get("ready", True) is True or dig(status, "state", "terminated", "reason") == "Completed":
        return None
    texts = [
        str(dig(status, state, part, "message") or "")
        for state in ("state", "lastState")
        for part in ("waiting", "terminated")
    ]
    texts.append(facts.logs.get("/".join(key_of(pod)), ""))
    reason = dig(status, "state", "waiting", "reason") or dig(status, "state", "terminated", "reason") or "not ready"
    evidence = [f"{named(pod)}, container {status.get('name')}: {reason}"]
    known = causes_in("\n".join(texts), named(pod))
    commands = _logs([pod])
    if not known:
        evidence += [text_of(text) for text in texts[:4] if text][:2]
        fix = "read its log, repair what it names, and delete the pod, so that it starts again"
        return FoundCause(_id(layer), named(node), f"{layer} does not run on the node", fix, tuple(evidence), commands)
    first = known[0]
    return FoundCause(
        first.id if layer == "the device plugin" else _id(layer),
        named(node),
        f"{layer} does not run on the node: {first.what}",
        first.fix,
        (*evidence, *first.evidence),
        (*commands, *first.commands),
    )


def _id(layer: str) -> str:
    return {"the driver": "DriverNotReady", "the container toolkit": "ToolkitNotReady"}.get(layer, "PluginNotReady")


def _logs(pods: list[Obj]) -> tuple[str, ...]:
    found = []
    for namespace, name in map(key_of, pods[:1]):
        found += [
            shell_command("kubectl logs {} -n {} --all-containers", name, namespace),
            shell_command("kubectl delete pod {} -n {}", name, namespace),
        ]
    return tuple(found)


def _missing_plugin(facts: DiagnosedCluster, node: Obj) -> Verdict:
    subject, deploy = named(node), labels_of(node).get(_DEPLOY_PLUGIN)
    if deploy in _OFF:
        what = f"the label {_DEPLOY_PLUGIN}={deploy} keeps the device plugin off the node"
        fix = "a MIG change or a driver upgrade sets it back; else set it to true"
        command = shell_command("kubectl label node {} {} --overwrite", name_of(node), f"{_DEPLOY_PLUGIN}=true")
        return FoundCause("PluginPaused", subject, what, fix, (f"label {_DEPLOY_PLUGIN}={deploy}",), (command,))
    if not facts.is_known(DAEMON_SET):
        return NotRun(subject, "why no device plugin runs on the node", facts.why_unknown(DAEMON_SET))
    sets = [
        one
        for one in facts.all(DAEMON_SET)
        if any(labels_of(one).get(key) in PLUGINS for key in _APPS) or name_of(one) in PLUGINS
    ]
    if not sets:
        what = "no device plugin is installed in the cluster"
        fix = "install the GPU stack"
        return FoundCause(
            "PluginNotInstalled", subject, what, fix, ("no DaemonSet of a device plugin",), ("shoal install",)
        )
    template = dig(sets[0], "spec", "template", "spec")
    hard = [taint for taint in taints_of(node) if taint.effect in HARD_EFFECTS]
    taint = untolerated(hard, tolerations_of(template))
    if taint is not None:
        what = f"the DaemonSet of the device plugin does not tolerate the taint {taint} of the node"
        fix = (
            "add the toleration to the DaemonSet; with the GPU operator in daemonsets.tolerations of the ClusterPolicy"
        )
        evidence = (f"{named(sets[0])} tolerates {_tolerated(template)}",)
        return FoundCause("TaintKeepsPluginOff", subject, what, fix, evidence, ("kubectl edit clusterpolicies",))
    selector = {key: str(value) for key, value in (dig(template, "nodeSelector") or {}).items()}
    lacking = {key: value for key, value in selector.items() if labels_of(node).get(key) != value}
    if lacking:
        words = few([f"{key}={value}" for key, value in lacking.items()])
        what = f"the DaemonSet of the device plugin selects nodes with {words}, and the node lacks it"
        fix = "let node feature discovery run on the node, or set the label"
        evidence = (f"nodeSelector of {named(sets[0])}",)
        commands = tuple(
            shell_command("kubectl label node {} {}", name_of(node), f"{key}={value}") for key, value in lacking.items()
        )
        return FoundCause("PluginSelectorMissesNode", subject, what, fix, evidence, commands)
    what = "no pod of the device plugin is on the node, although its DaemonSet selects it"
    fix = "see the Events of the DaemonSet"
    namespace, name = key_of(sets[0])
    return FoundCause(
        "PluginPodMissing",
        subject,
        what,
        fix,
        (named(sets[0]),),
        (shell_command("kubectl describe ds {} -n {}", name, namespace),),
    )


def _tolerated(template: object) -> str:
    return few([each.key or "every taint" for each in tolerations_of(template)]) or "no taint"
