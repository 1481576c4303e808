"""Tells why the pods of a controller were not created: which ResourceQuota is exceeded, and by how much."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from shlex import quote as quoted
from typing import Any

import msgspec

from shoal.engine.reasons import Code
from shoal.units.errors import UserError
from shoal.units.quantity import ZERO, Quantity
from shoal.views.asks import pods_words
from shoal.views.explanation import HELP, NOT_CREATED, REFUSED, WOULD_RUN, Explanation
from shoal.views.remedies import Remedy, both

Obj = Mapping[str, Any]
EXCEEDED = "ExceededQuota"
FAILED_CREATE = "FailedCreate"
_FORBIDDEN = "is forbidden: "
_FORBIDDEN_ALL = " forbidden: "
_PREFIX = "exceeded quota: "
_NO_ACCOUNT = re.compile(r'serviceaccount "(?P<name>[a-z0-9.-]+)" not found')
_EXCEEDED = re.compile(
    r"(?P<name>[^,]+), requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)"
)


class Exceeded(msgspec.Struct, frozen=True):
    """A ResourceQuota that refuses a pod."""

    name: str
    resource: str
    requested: Quantity
    """By one pod."""
    used: Quantity
    hard: Quantity
    pods: int = 1
    """How many pods are to be created."""
    controller: str = ""
    """What is refused, if it is not a pod: `jobs.batch train`."""
    need: Quantity | None = None
    """The quota that lets them in, where other pods take some of it before them."""

    @property
    def wanted(self) -> Quantity:
        """The quota that all of them need."""
        if self.need is not None:
            return self.need
        return Quantity(self.used.nano + self.requested.nano * self.pods, self.hard.format)

    @property
    def missing(self) -> Quantity:
        return self.wanted - self.hard


def exceeded(messages: Iterable[str], quotas: Sequence[Obj] | None, pods: int) -> list[Exceeded]:
    """From the messages of the API server, with the present figures of the quotas; only those that are still short.
    None: the messages have the present figures."""
    found: dict[tuple[str, str], Exceeded] = {}
    status = {quota["metadata"]["name"]: quota.get("status") or {} for quota in quotas or ()}
    for message in messages:
        match = _EXCEEDED.match(message.partition(_PREFIX)[2])
        name = "" if match is None else match["name"]
        if match is None or (quotas is not None and name not in status):
            continue
        status.setdefault(name, {})
        controller = _controller(message)
        used, hard = _amounts(match["used"]), _amounts(match["limited"].rstrip("."))
        for resource, requested in _amounts(match["requested"]).items():
            now_used = _quantity(status[name].get("used", {}).get(resource))
            now_used = used.get(resource, ZERO) if now_used is None else now_used
            now_hard = _quantity(status[name].get("hard", {}).get(resource))
            now_hard = hard.get(resource) if now_hard is None else now_hard
            if now_hard is None:
                continue
            count = 1 if controller else pods
            each = Exceeded(name, resource, requested, now_used, now_hard, count, controller)
            if each.hard < each.wanted:
                found[name, resource] = each
    return list(found.values())


def tell_refusal(
    explanation: Explanation,
    found: Sequence[Exceeded],
    namespace: str,
    *,
    would_run: bool,
    is_living: bool = True,
    obstacle: str = "",
) -> None:
    """More quota is a remedy only where the pods would then run: alone if they fit on the nodes, else with a change of
    the nodes. `obstacle`: why the API server refuses the pods even with more quota."""
    is_started = explanation.outcome.startswith("pods: ")
    missing = f"{pods_words(max(each.pods for each in found))} not created"
    explanation.outcome = f"{explanation.outcome}, {missing}" if is_started else "waits: its pods are not created"
    explanation.code = EXCEEDED
    explanation.chapters.insert(0, ("quota", _lines(found, obstacle)))
    quota = raise_remedy(found, namespace)
    quota = quota if is_living else Remedy(quota.words)
    found_before = explanation.remedies
    if obstacle:
        explanation.remedies = []
    elif would_run:
        explanation.remedies = [quota]
    else:
        explanation.remedies = [both(quota, each) for each in found_before]
    lines = [line for remedy in explanation.remedies for line in remedy.lines()]
    kept = [chapter for chapter in explanation.chapters if chapter[0] not in (HELP, REFUSED)]
    at = next((at for at, (heading, _) in enumerate(explanation.chapters) if heading == HELP), len(kept))
    before = {line for remedy in found_before for line in remedy.lines()}
    facts = [line for heading, each in explanation.chapters if heading == HELP for line in each if line not in before]
    if lines or facts:
        kept.insert(at, (HELP, [*facts, *lines]))
    explanation.chapters = kept


def missing_account(message: str) -> str:
    """The ServiceAccount that did not exist when the pods were refused; empty for other refusals."""
    found = _NO_ACCOUNT.search(message)
    return "" if found is None else found["name"]


def missing_account_words(message: str, namespace: str, *, exists: bool = False) -> list[str]:
    """What to do about a ServiceAccount that does not exist, with the command; empty for other refusals. `exists`: it
    was created since then."""
    name = missing_account(message)
    if not name:
        return []
    if exists:
        words = f"ServiceAccount {name} exists now. The controller creates the pods at its next attempt"
        return [f"{words}, for which it waits longer after each failure."]
    words = "Create the ServiceAccount, or correct serviceAccountName in the pods."
    return [words, f"kubectl create serviceaccount {quoted(name)} -n {quoted(namespace)}"]


def not_created_words(message: str) -> str:
    """The headline, with the cause of a refusal. A quota is not one: the chapter `quota` has its present figures."""
    cause = message.partition(_FORBIDDEN_ALL)[2].rstrip(".")
    return "waits: its pods are not created" + f" ({cause})" * (bool(cause) and _PREFIX not in message)


def tell_last_refusal(explanation: Explanation, message: str) -> list[str]:
    """Puts the cause of the last Event about pods that were not created into the headline, where that says no more than
    that they do not exist. Returns the lines that belong under `refused`. `tell_refusal` reports quotas: one that
    is not exceeded any more is no cause."""
    cause = message.partition(_FORBIDDEN)[2].rstrip(".")
    if not cause or _PREFIX in message or not explanation.outcome.startswith(NOT_CREATED):
        return [message]
    _, would_run, where = explanation.outcome.partition(WOULD_RUN)
    explanation.outcome = f"waits: its pods are not created ({cause})"
    explanation.code = Code.FORBIDDEN
    return [message, f"once it is created, {would_run}{where}"] if where else [message]


def _lines(found: Sequence[Exceeded], obstacle: str = "") -> list[str]:
    last = [f"With this quota, the API server would still refuse them: {obstacle}"] if obstacle else []
    return [*map(_words, found), *last]


def _words(each: Exceeded) -> str:
    count = "a pod requests" if each.pods == 1 else f"each of {each.pods:,} pods requests"
    count = f"{each.controller} requests" if each.controller else count
    others = "" if each.need is None else ", those of pods that come first included"
    return (
        f"ResourceQuota {each.name} would be exceeded: {each.used} of {each.hard} {each.resource} used, {count} "
        f"{each.requested}, {each.missing} missing{others}"
    )


def _controller(message: str) -> str:
    """Of `Error creating: jobs.batch "j" is forbidden: ...`: `jobs.batch j`; empty for pods and other messages."""
    before, is_refusal, _ = message.partition('" is forbidden')
    words, has_name, name = before.rpartition('"')
    kind = words.rstrip().rpartition(" ")[2]
    return f"{kind} {name}" if is_refusal and has_name and name and kind not in ("", "pods") else ""


def raise_remedy(found: Sequence[Exceeded], namespace: str) -> Remedy:
    """All quotas that are short."""
    words: list[str] = []
    commands = []
    for name in dict.fromkeys(each.name for each in found):
        parts = [each for each in found if each.name == name]
        amounts = ", ".join(f"{each.resource} from {each.hard} to {each.wanted}" for each in parts)
        hard = {each.resource: str(each.wanted) for each in parts}
        body = json.dumps({"spec": {"hard": hard}}, separators=(",", ":"))
        commands.append(
            f"kubectl patch resourcequota {quoted(name)} -n {quoted(namespace)} --type=merge -p={quoted(body)}"
        )
        words.append(f"Raise {amounts} in ResourceQuota {name}.")
    return Remedy(" ".join(words), tuple(commands))


def _amounts(text: str) -> dict[str, Quantity]:
    pairs = (part.partition("=") for part in text.split(","))
    return {name: amount for name, _, value in pairs if (amount := _quantity(value)) is not None}


def _quantity(text: object) -> Quantity | None:
    if not isinstance(text, str):
        return None
    try:
        return Quantity.parse(text)
    except UserError:
        return None
