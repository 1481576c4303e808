"""Tells what became of the pods of one job, from the queue to the devices, as a history recorded it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from shoal.cost.records import Holder, Holding, Wait

MOST_ATTEMPTS = 200


class JobSubject(msgspec.Struct, frozen=True):
    """A pod, a gang, or an object that makes pods."""

    kind: str
    """In lower case: `pod`, `gang`, `job`, `statefulset`."""
    namespace: str
    name: str


class PodAttempt(msgspec.Struct, frozen=True):
    """One time that a pod waited and ran. Times in milliseconds since 1970."""

    pod: str
    queue: str
    queued_ms: int | None
    """When it began to wait; None where the history has not seen that."""
    waited_ms: int
    reasons: Sequence[str]
    """Why it waited, in order, each once."""
    machine: str = ""
    devices: Sequence[str] = ()
    """The GPUs, MIG instances or replicas that it held."""
    bound_ms: int | None = None
    running_ms: int | None = None
    end_ms: int | None = None
    """None while it waits or runs."""
    is_preempted: bool = False


def pod_attempts(
    holdings: Iterable[Holding], waits: Iterable[Wait], subject: JobSubject, now_ms: int
) -> tuple[list[PodAttempt], int]:
    """The newest first, and how many there are in all."""
    waited: dict[str, list[Wait]] = {}
    for wait in waits:
        if _is_of(wait.holder, subject):
            waited.setdefault(wait.holder.pod, []).append(wait)
    for found in waited.values():
        found.sort(key=lambda one: one.start_ms)
    attempts = []
    held = sorted((one for one in holdings if _is_of(one.holder, subject)), key=lambda one: one.start_ms)
    for holding in held:
        before = [one for one in waited.get(holding.holder.pod, ()) if one.end_ms is not None]
        mine = [one for one in before if one.start_ms <= holding.start_ms]
        if mine:
            waited[holding.holder.pod] = [one for one in waited[holding.holder.pod] if one not in mine]
        attempts.append(_attempt(holding.holder, mine, holding, now_ms))
    attempts += [_attempt(found[0].holder, found, None, now_ms) for found in waited.values() if found]
    attempts.sort(key=lambda one: (-_begin(one), one.pod))
    return attempts[:MOST_ATTEMPTS], len(attempts)


def _begin(one: PodAttempt) -> int:
    return one.queued_ms if one.queued_ms is not None else one.bound_ms or 0


def _attempt(holder: Holder, waits: Sequence[Wait], held: Holding | None, now_ms: int) -> PodAttempt:
    ends = [now_ms if one.end_ms is None else one.end_ms for one in waits]
    found = PodAttempt(
        pod=holder.pod,
        queue=holder.queue,
        queued_ms=waits[0].start_ms if waits else None,
        waited_ms=sum(max(0, end - one.start_ms) for one, end in zip(waits, ends, strict=True)),
        reasons=list(dict.fromkeys(one.reason for one in waits if one.reason)),
    )
    if held is None:
        end_ms = None if any(one.end_ms is None for one in waits) else max(ends)
        return msgspec.structs.replace(found, end_ms=end_ms)
    return msgspec.structs.replace(
        found,
        machine=held.machine,
        devices=[one.part or one.device for one in held.devices],
        bound_ms=held.start_ms,
        running_ms=held.running_ms,
        end_ms=held.end_ms,
        is_preempted=held.is_preempted,
    )


def _is_of(holder: Holder, subject: JobSubject) -> bool:
    if holder.namespace != subject.namespace or not holder.pod or holder.is_overhead:
        return False
    match subject.kind:
        case "pod":
            return holder.pod == subject.name
        case "gang":
            # A Job whose pods run together is a gang with the name of the Job.
            return holder.gang == subject.name or (not holder.gang and holder.job == subject.name)
    return holder.job == subject.name and holder.owner_kind.lower() in ("", subject.kind)
