"""Describes each remedy that would admit a workload in one sentence, with the fields of the manifests to edit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from shoal.engine.queues.flavors.capacity import shown
from shoal.engine.queues.remedies.remedy import Effect, FieldChange, Remedy, RemedyKind
from shoal.views.enumeration import few

_MOST_NAMES = 4
_ABSENT = " doesn't exist"

_AFTERWARDS = {
    Effect.PREEMPTS: " Other workloads are then preempted.",
    Effect.ADMITTED_BY_QUOTA: " Its quota is then free; whether such pods find places on the nodes was not tried.",
}


def remedy_words(remedy: Remedy, called: Callable[[str], str] = str) -> str:
    """One sentence, and what is to be known of its effect. `called`: the words for a workload of this key."""
    changes = remedy.changes
    match remedy.kind:
        case RemedyKind.CORRECT:
            return _correction(remedy)
        case RemedyKind.TURN if remedy.effect is Effect.PREEMPTS:
            return "Nothing has to change: other workloads are preempted for it."
        case RemedyKind.TURN if changes:
            (queue,) = changes
            first = _few_called(queue.holders, called)
            return (
                f"It has to wait until {first} is admitted, which is before it in ClusterQueue {queue.name}: "
                f"queueingStrategy {queue.before}."
            )
        case RemedyKind.TURN if remedy.effect is Effect.UNTRIED:
            return f"It has to wait for workloads before it. {remedy.message.rstrip('.')}."
        case RemedyKind.TURN:
            return "Nothing has to change: it is admitted when it is next considered."
        case RemedyKind.RECLAIM:
            (rule,) = changes
            words = f"Set {rule.field} of ClusterQueue {rule.name} to {rule.after}: it takes back what others borrow."
        case RemedyKind.FREED:
            words = f"It starts if {_joined(map(_given_back, changes))}{_enders(changes, called)}."
        case RemedyKind.ENDED:
            ends = "workload ends" if len(changes) == 1 else "workloads end"
            words = f"It starts if the {ends}: {_few_called([change.name for change in changes], called)}."
            words += "" if remedy.is_least else " Fewer may do: that was not tried to the end."
        case RemedyKind.FEWER_PODS:
            words = f"{_capital(_joined(map(_fewer, changes)))}."
        case RemedyKind.FLAVOR:
            flavors = ", ".join(dict.fromkeys(change.flavor for change in changes))
            words = f"{_capital(_joined(map(_condition, changes)))}: flavor {flavors} then suits it."
        case RemedyKind.PRIORITY:
            words = f"Raise its priority {_from_to(changes[0])}."
        case RemedyKind.BORROWING | RemedyKind.LENDING | RemedyKind.QUOTA:
            words = f"{_capital(_joined(_raised(changes)))}."
    return words + _AFTERWARDS.get(remedy.effect, "")


def cut_words(trials: int) -> str:
    """The search was ended before it had tried everything."""
    return f"The search for more was ended after {trials:,} trials."


def inactive_check_words(checks: Iterable[tuple[str, str]]) -> str:
    """`checks`: the name of each inactive AdmissionCheck, and its controller."""
    return " ".join(
        f"The condition Active of AdmissionCheck {name} is set by its controller, {controller}; does it run? Its "
        f"message: kubectl describe admissioncheck {name}"
        for name, controller in checks
    )


def _correction(remedy: Remedy) -> str:
    reason = remedy.message.rstrip(".")
    if not remedy.changes:
        return f"Correct this first: {reason}."
    if all(not change.field for change in remedy.changes) and reason.endswith(_ABSENT):
        # To name the object again in a correction would say nothing.
        return f"{reason.removesuffix(_ABSENT)} does not exist: create it."
    return f"{_capital(_joined(map(_edit, remedy.changes)))}: {reason}."


def _edit(change: FieldChange) -> str:
    what = f"{change.object} {change.name}"
    if not change.field:
        return f"create {what}"
    if change.field == "coveredResources":
        return f"add {change.after} to coveredResources of {what}, with a quota"
    return (
        f"correct {change.field} of {what}"
        if change.after is None
        else f"set {change.field} of {what} to {change.after}"
    )


def _raised(changes: Iterable[FieldChange]) -> list[str]:
    """Where pods have to change as well, that comes first."""
    conditions = [_condition(change) for change in changes if not change.resource]
    amounts = _joined(_amount(change) for change in changes if change.resource)
    return [*conditions, f"raise {amounts}"] if amounts else conditions


def _amount(change: FieldChange) -> str:
    place = f"{change.resource} in flavor {change.flavor} of {change.object} {change.name}"
    return f"{change.field} of {place} {_from_to(change)}"


def _from_to(change: FieldChange) -> str:
    return f"from {_shown(change.resource, change.before or 0)} to {_shown(change.resource, change.after)}"


def _given_back(change: FieldChange) -> str:
    verb = "borrows" if change.field == "borrowed" else "uses"
    before, after = change.before, change.after
    if not (isinstance(before, int) and isinstance(after, int)):
        return f"{change.object} {change.name} {verb} less"
    part, whole = _shown(change.resource, before - after), _shown(change.resource, before)
    amount = f"the {whole}" if before - after == before else f"{part} of the {whole}"
    return (
        f"{change.object} {change.name} gives back {amount} {change.resource} in flavor {change.flavor} that it {verb}"
    )


def _enders(changes: Iterable[FieldChange], called: Callable[[str], str]) -> str:
    holders = list(dict.fromkeys(key for change in changes for key in change.holders))
    if not holders:
        return ""
    verbs = "ends or is preempted" if len(holders) == 1 else "end or are preempted"
    return f", which happens when {_few_called(holders, called)} {verbs}"


def _few_called(workloads: Sequence[str], called: Callable[[str], str]) -> str:
    """To look up the words of those that are not shown would take time."""
    shown = [*map(called, workloads[:_MOST_NAMES]), *workloads[_MOST_NAMES:]]
    return few(shown, _MOST_NAMES)


def _fewer(change: FieldChange) -> str:
    pods = "pod" if change.after == 1 else "pods"
    if change.field == "minCount":
        return f"let pod set {change.part} start with {change.after} {pods} (minCount) instead of {change.before}"
    return f"ask for {change.after} {pods} instead of {change.before} in pod set {change.part}"


def _condition(change: FieldChange) -> str:
    match change.field:
        case "nodeSelector":
            return f"drop nodeSelector {change.before} of pod set {change.part}"
        case "nodeAffinity":
            return f"drop the node affinity of pod set {change.part}"
        case _:
            return f"let pod set {change.part} tolerate the taint {change.after}"


def _shown(resource: str, amount: int | str | None) -> str:
    return shown(resource, amount) if isinstance(amount, int) else str(amount)


def _joined(parts: Iterable[str]) -> str:
    return ", and ".join(parts)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
