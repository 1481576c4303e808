"""Why a GPU is used little, from one reading of DCGM's metrics: idle, waiting for the CPU, small batches, an oversized
model of GPU, heat, or a stuck process. What suffices for a job is judged from the history of its use.

One reading is a moment. The causes say so, and name the series to look at over time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster, device_requests, has_ended
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict, shell_command
from shoal.policy.object_set import key_of
from shoal.prometheus.samples import samples_of

UTIL, USED, FREE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
POWER, LIMIT, TEMPERATURE = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_MGMT_LIMIT", "DCGM_FI_DEV_GPU_TEMP"
REASONS, ACTIVE, TENSOR = (
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
)
_OLD_REASONS = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"
_THERMAL = 0x20 | 0x40
"""The bits of software and hardware slowdown by heat."""
_HOT_C = 85
_BUSY, _LITTLE, _IDLE = 65.0, 30.0, 5.0
_HIGH_POWER, _SMALL_MEMORY = 0.9, 0.25


class GpuReading(msgspec.Struct, frozen=True):
    uuid: str
    node: str
    pod: str
    values: Mapping[str, float]

    def share(self, part: str, rest: str) -> float | None:
        one, other = self.values.get(part), self.values.get(rest)
        return one / (one + other) if one is not None and other is not None and one + other > 0 else None

    @property
    def subject(self) -> str:
        return f"gpu {self.uuid}" + (f" ({self.pod})" if self.pod else "")


def readings_of(text: str) -> list[GpuReading]:
    """By GPU, in the order of the text."""
    found: dict[str, dict[str, float]] = {}
    owners: dict[str, tuple[str, str]] = {}
    for name, labels, value in samples_of(text):
        uuid = labels.get("UUID") or labels.get("uuid") or ""
        if not uuid or not name.startswith("DCGM_"):
            continue
        found.setdefault(uuid, {})[name] = value
        pod = labels.get("exported_pod") or labels.get("pod") or ""
        namespace = labels.get("exported_namespace") or labels.get("namespace") or ""
        if uuid not in owners or pod:
            owners[uuid] = labels.get("Hostname") or labels.get("node") or "", f"{namespace}/{pod}" if pod else ""
    return [GpuReading(uuid, *owners[uuid], values) for uuid, values in found.items()]


def gpu_use(facts: DiagnosedCluster, *, uuid: str = "", node: str = "", pod: str = "") -> Iterator[Verdict]:
    """Of one GPU, of a node, of a pod (`namespace/name`), or of all."""
    subject = f"gpu {uuid}" if uuid else f"node {node}" if node else f"pod {pod}" if pod else "cluster"
    if facts.metrics is None:
        yield NotRun(
            subject, "the use of its GPUs", "no metrics are given; pass those of the exporter with --metrics FILE"
        )
        return
    chosen = [
        one
        for one in readings_of(facts.metrics)
        if (not uuid or one.uuid == uuid) and (not node or one.node == node) and (not pod or one.pod == pod)
    ]
    if not chosen:
        yield NotRun(subject, "the use of its GPUs", "the metrics have no such GPU")
    for one in chosen:
        yield from _judged(one)


def measured_use(facts: DiagnosedCluster, pods: Iterable[Obj]) -> Iterator[FoundCause]:
    """Of jobs whose recorded use needs less than they hold; one cause for each job."""
    told: set[str] = set()
    for pod in pods:
        size = facts.sizes.get("/".join(key_of(pod)))
        if size is None or size.job in told or has_ended(pod) or not device_requests(pod):
            continue
        told.add(size.job)
        what = f"the job has used a small part of its GPUs since they are recorded: {size.suffices} would suffice"
        fix = "ask for that; check the peak of the longest run before"
        command = shell_command("shoal size --job {}", size.job)
        yield FoundCause("OversizedGpu", f"job {size.job}", what, fix, (size.evidence,), (command,))


def _judged(one: GpuReading) -> Iterator[Verdict]:
    values = one.values
    util = values.get(UTIL)
    if util is None and ACTIVE in values:
        util = values[ACTIVE] * 100
    found = [*_heat(one), *_use(one, util)]
    if found:
        yield from found
    elif util is None:
        yield NotRun(one.subject, "its utilisation", f"the metrics have neither {UTIL} nor {ACTIVE} for it")
    else:
        yield RuledOut(one.subject, f"the GPU is in use ({util:.0f} %), and no heat reduces its clocks")


def _heat(one: GpuReading) -> Iterator[FoundCause]:
    values = one.values
    reasons = values.get(REASONS, values.get(_OLD_REASONS))
    hot = values.get(TEMPERATURE)
    is_throttled = reasons is not None and reasons >= 0 and bool(int(reasons) & _THERMAL)
    if is_throttled or (reasons is None and hot is not None and hot >= _HOT_C):
        evidence = [f"{TEMPERATURE} {hot:.0f} C"] if hot is not None else []
        if reasons is not None:
            evidence.append(f"{REASONS} {int(reasons):#x}")
        what = (
            "heat reduces the clocks of the GPU" if is_throttled else "the GPU is so hot that its clocks may be reduced"
        )
        fix = "check fans, inlet temperature and neighbours; lower the power limit until then"
        yield FoundCause(
            "ThermalThrottling", one.subject, what, fix, tuple(evidence), ("nvidia-smi -q -d PERFORMANCE,TEMPERATURE",)
        )


def _use(one: GpuReading, util: float | None) -> Iterator[FoundCause]:
    if util is None:
        return
    values = one.values
    power, limit = values.get(POWER), values.get(LIMIT)
    memory, tensor = one.share(USED, FREE), values.get(TENSOR)
    is_held = bool(one.pod) or (memory or 0) > _SMALL_MEMORY
    evidence = [f"utilisation {util:.0f} %"]
    if memory is not None:
        evidence.append(f"memory {memory:.0%} used")
    if power is not None:
        evidence.append(f"power {power:.0f} W" + (f" of {limit:.0f} W" if limit else ""))
    shown = tuple(evidence)
    if power is not None and limit and power >= _HIGH_POWER * limit and util < _LITTLE:
        what = "the GPU draws nearly its full power at a low utilisation: a process is stuck"
        fix = "find the process and end it, or delete its pod; reset the GPU if the power stays"
        yield FoundCause(
            "StuckProcess",
            one.subject,
            what,
            fix,
            shown,
            ("nvidia-smi pmon -c 1", "nvidia-smi --query-compute-apps=pid,used_memory --format=csv"),
        )
    elif util < _IDLE and is_held:
        what = "a pod holds the GPU, and the GPU does nothing"
        fix = "end the pod if it is forgotten; a notebook or a stuck job holds GPUs like that"
        yield FoundCause("IdleGpu", one.subject, what, fix, shown, ("shoal cost advise",))
    elif util < _LITTLE and (memory or 0) >= _SMALL_MEMORY:
        what = "the GPU waits most of the time, with its memory in use: the CPU or the storage does not feed it"
        fix = "more CPU and more workers of the data loader, pinned memory, prefetching, data on a local disk"
        yield FoundCause("CpuBottleneck", one.subject, what, fix, shown, ("kubectl top pods --containers",))
    elif util < _BUSY and memory is not None and memory < _SMALL_MEMORY:
        what = "the work needs a small part of the GPU: the batch is small, or the GPU is larger than needed"
        fix = "a larger batch; else a MIG instance, a share or a smaller model"
        yield FoundCause("OversizedGpu", one.subject, what, fix, shown, ("shoal cost advise", "shoal size MODEL"))
    elif util < _BUSY and tensor is not None and tensor < 0.1:
        what = "the GPU is used below 65 %, and its tensor cores hardly work: small batches or full precision"
        fix = "a larger batch, bf16 or tf32"
        yield FoundCause("SmallBatch", one.subject, what, fix, (*shown, f"{TENSOR} {tensor:.2f}"))
