"""What is wrong with a node beside its GPU stack: it is lost, or its GPUs report errors."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.devices.xids import is_known, xid_of
from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import (
    DiagnosedCluster,
    condition,
    event_time,
    event_words,
    few,
    labels_of,
    message_of,
    name_of,
    named,
    taints_of,
    text_of,
)
from shoal.policy.diagnosis.log_reading import is_hardware, taint_commands, xid_fix
from shoal.policy.diagnosis.pending_pods import is_ready
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict, shell_command
from shoal.policy.fields import dig, maps
from shoal.policy.kinds import EVENT

_HEALTHY, _UNHEALTHY_EVENTS = "GPUHealthy", ("GPUUnhealthy", "GPUWarning")
_HEALTH_TAINTS = ("gpu-health", "gpu.nvidia.com/xid", "gpu.nvidia.com/gpu-lost")
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def lost_node(facts: DiagnosedCluster, node: Obj) -> Iterator[Verdict]:
    subject, name = named(node), name_of(node)
    if not condition(node, "Ready"):
        yield NotRun(subject, "whether the node is ready", "the node has no status")
    elif is_ready(node):
        yield RuledOut(subject, "the node is ready")
    else:
        yield _not_ready(facts, node)
    for kind in _PRESSURES:
        found = condition(node, kind)
        if found.get("status") == "True":
            evidence = (text_of(f"{kind}: {found.get('reason') or ''}: {found.get('message') or ''}"),)
            fix = "free the resource on the node, or drain it"
            yield FoundCause(
                kind,
                subject,
                f"the node has the condition {kind}",
                fix,
                evidence,
                (shell_command("kubectl describe node {}", name),),
            )


def _not_ready(facts: DiagnosedCluster, node: Obj) -> FoundCause:
    ready, name = condition(node, "Ready"), name_of(node)
    evidence = [text_of(f"Ready is {ready.get('status')}: {ready.get('reason') or ''}: {ready.get('message') or ''}")]
    evidence += [f"{named(pod)} runs there: {resumption(pod)}" for pod in facts.holders(name)[:6]]
    what = (
        "the node does not report any more: it, its network or its kubelet is down"
        if is_silent(node)
        else "the kubelet reports that the node is not ready"
    )
    fix = "restart the machine or its kubelet; if it does not come back, delete the node, so that its pods are replaced"
    return FoundCause(
        "NodeNotReady",
        named(node),
        what,
        fix,
        tuple(evidence),
        (shell_command("kubectl describe node {}", name), shell_command("kubectl delete node {}", name)),
    )


def is_silent(node: Obj) -> bool:
    """Whether the control plane has not heard from it for a while."""
    return condition(node, "Ready").get("status") == "Unknown"


def resumption(pod: Obj) -> str:
    """Whether a controller replaces the pod, and whether it may continue from a checkpoint."""
    owner = next((one for one in maps(dig(pod, "metadata", "ownerReferences")) if one.get("controller")), None)
    if owner is None:
        return "no controller replaces it"
    claims = [one for one in maps(dig(pod, "spec", "volumes")) if one.get("persistentVolumeClaim")]
    kept = (
        "it has a volume for checkpoints"
        if claims
        else "it has no volume that outlives it, so it starts from the beginning"
    )
    return f"its {owner.get('kind')} {owner.get('name')} replaces it; {kept}"


def gpu_errors(facts: DiagnosedCluster, node: Obj, uuid: str = "") -> Iterator[Verdict]:
    """The errors that the node reports about its GPUs, or about one of them."""
    subject, name = named(node), name_of(node)
    texts = list(_reports(facts, node))
    if uuid:
        texts = [text for text in texts if uuid in text]
    numbers: dict[int, list[str]] = {}
    others = []
    for text in texts:
        found = list(xids_in(text))
        for number in found:
            numbers.setdefault(number, []).append(text_of(text))
        if not found:
            others.append(text_of(text))
    for number, evidence in numbers.items():
        yield _xid(facts, node, number, evidence)
    if others and not numbers:
        what = "the node reports an unhealthy GPU"
        fix = "follow the advice of the message; drain the node before a reset"
        yield FoundCause("GpuUnhealthy", subject, what, fix, tuple(dict.fromkeys(others))[:4], taint_commands(name)[1:])
    if not texts:
        if facts.is_known(EVENT):
            yield RuledOut(subject, "no condition, taint or Event reports an error of a GPU")
        elif condition(node, _HEALTHY):
            yield RuledOut(subject, f"the condition {_HEALTHY} is True")
        else:
            yield NotRun(subject, "Xid errors", f"{facts.why_unknown(EVENT)}, and no agent reports {_HEALTHY}")
    yield NotRun(subject, "the kernel log", "run on the node: dmesg | grep Xid | shoal doctor --log -")


def _reports(facts: DiagnosedCluster, node: Obj) -> Iterator[str]:
    healthy = condition(node, _HEALTHY)
    if healthy.get("status") == "False":
        yield f"condition {_HEALTHY}: {healthy.get('message') or healthy.get('reason')}"
    for each in maps(dig(node, "status", "conditions")):
        kind = str(each.get("type") or "")
        if (
            each.get("status") == "True"
            and ("xid" in kind.lower() or kind.lower().startswith("gpu"))
            and kind != _HEALTHY
        ):
            yield f"condition {kind}: {each.get('message') or each.get('reason')}"
    for taint in taints_of(node):
        if taint.key in _HEALTH_TAINTS:
            words = f" (Xid {taint.value})" if taint.key.endswith("/xid") else ""
            yield f"taint {taint}{words}"
    healthy_since = _moment(healthy.get("lastTransitionTime")) if healthy.get("status") == "True" else ""
    for event in facts.events(node):
        is_over = _moment(event_time(event)) < healthy_since
        is_error = event.get("reason") in _UNHEALTHY_EVENTS or "xid" in message_of(event).lower()
        if is_error and not is_over:
            yield event_words(event)


def _moment(written: object) -> str:
    """Without fractions of a second, which only some times have; times of equal length have the order of texts."""
    return str(written or "")[: len("2026-01-01T00:00:00")]


def xids_in(text: str) -> Iterator[int]:
    """The numbers behind each `Xid`, `XID` or `xid-`."""
    for part in text.lower().split("xid")[1:]:
        after = part[:60].lstrip(" :-=#(")
        if after.startswith("pci:"):
            # The kernel names the device first: `Xid (PCI:0000:53:00): 79`.
            after = after.partition("):")[2].lstrip()
        digits = after[: len(after) - len(after.lstrip("0123456789"))]
        if digits and len(digits) < 5:
            yield int(digits)


def _xid(facts: DiagnosedCluster, node: Obj, number: int, evidence: list[str]) -> FoundCause:
    name = name_of(node)
    holders = [named(pod) for pod in facts.holders(name)]
    users = (f"pods with GPUs on the node: {few(holders)}",) if holders else ()
    what = f"Xid {number}: {xid_of(number).meaning}" if is_known(number) else f"Xid {number}, which is not known"
    commands = (f"shoal xid {number}", *(taint_commands(name) if is_hardware(number) else ()))
    shown = (*dict.fromkeys(evidence[-3:]), *users)
    return FoundCause(f"Xid{number}", named(node), what, xid_fix(number), shown, commands)


def nodes_of_gpu(facts: DiagnosedCluster, uuid: str) -> list[Obj]:
    """The nodes whose objects, Events or annotations name the GPU."""
    found = []
    for node in facts.nodes:
        texts = [*_reports(facts, node), *map(str, (dig(node, "metadata", "annotations") or {}).values())]
        if any(uuid in text for text in texts) or uuid in labels_of(node).values():
            found.append(node)
    return found
