"""Implements the rules of the admission policies in Python, for servers without such policies.

The functions are pure: they return the changed object. They follow the order of the policies' CEL expressions and use
the same table; tests compare the results of both.

Rejected: a webhook on all servers instead of policies. A job created while no replica of Shoal answers would be
rejected, or would run at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from shoal.client.kind import PODS
from shoal.controllers.gatekeeping.held_kinds import (
    DEFAULT_QUEUE,
    GATE,
    HOLDERS,
    KEEPERS,
    MANAGED,
    PARENT,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    SWITCHES,
    HoldingRules,
    Keeper,
)
from shoal.controllers.gatekeeping.rendezvous import is_asked, variables_of

Obj = dict[str, Any]
_PATHS = {(kind.group, kind.name): switch.path for switch in SWITCHES for kind in switch.kinds}
_KEEPERS = {(keeper.kind.group, keeper.kind.name): keeper for keeper in KEEPERS}
_HOLDERS = frozenset(HOLDERS)


def held(
    obj: Obj, kind: tuple[str, str], rules: HoldingRules, has_default: Callable[[], bool], *, is_new: bool = True
) -> Obj:
    """The object after the change; the argument is not changed. `kind`: its group and kind. `has_default`: whether its
    namespace has a queue named `default`.
    """
    found = deepcopy(obj)
    found.setdefault("metadata", {})
    if not rules.frameworks.has(*kind):
        return found
    if kind == (PODS.group, PODS.name):
        _hold_pod(found, rules, has_default)
    elif kind in _PATHS and is_new:
        _hold_job(found, _PATHS[kind], rules, has_default)
    elif kind in _KEEPERS:
        _hand_down(found, _KEEPERS[kind], has_default, is_new=is_new)
    return found


def with_rendezvous(pod: Obj) -> Obj:
    """The pod with the variables that it requests."""
    if not is_asked((pod.get("metadata") or {}).get("annotations") or {}):
        return pod
    found = deepcopy(pod)
    for part in ("containers", "initContainers"):
        for container in found["spec"].get(part) or ():
            present = container.get("env") or []
            container["env"] = [*variables_of(present), *present]
    return found


def _hold_job(obj: Obj, path: tuple[str, ...], rules: HoldingRules, has_default: Callable[[], bool]) -> None:
    if _is_child(obj) or not isinstance(obj.get("spec"), dict):
        return
    if not (_takes_queue(obj, has_default) or rules.everything):
        return
    _below(obj, path[:-1])[path[-1]] = True


def _hold_pod(pod: Obj, rules: HoldingRules, has_default: Callable[[], bool]) -> None:
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return
    if not _is_queued_pod(pod, rules, has_default):
        return
    _below(pod, ("metadata", "labels"))[MANAGED] = "true"
    finalizers = pod["metadata"].setdefault("finalizers", [])
    if MANAGED not in finalizers:
        finalizers.append(MANAGED)
    gates = spec.setdefault("schedulingGates", [])
    if all(gate.get("name") != GATE for gate in gates):
        gates.append({"name": GATE})


def _is_queued_pod(pod: Obj, rules: HoldingRules, has_default: Callable[[], bool]) -> bool:
    if _queue_of(pod):
        return PARENT in (pod["metadata"].get("annotations") or {}) or not _is_child(pod)
    is_nobodys = _controller(pod) is None
    if is_nobodys and _takes_queue(pod, has_default):
        return True
    return is_nobodys and rules.everything


def _hand_down(obj: Obj, keeper: Keeper, has_default: Callable[[], bool], *, is_new: bool) -> None:
    if _is_child(obj) or not (_takes_queue(obj, has_default) if is_new else _queue_of(obj)):
        return
    labels = obj["metadata"]["labels"]
    for place, path in enumerate(keeper.templates):
        if place and not _has(obj, path):
            continue
        on_template = _below(obj, (*path, "metadata", "labels"))
        on_template[QUEUE_LABEL] = labels[QUEUE_LABEL]
        if PRIORITY_LABEL in labels:
            on_template[PRIORITY_LABEL] = labels[PRIORITY_LABEL]
        _below(obj, (*path, "metadata", "annotations"))[PARENT] = keeper.kind.name.lower()


def _takes_queue(obj: Obj, has_default: Callable[[], bool]) -> bool:
    """Whether the object requests a queue, or gets the default one."""
    if QUEUE_LABEL in (obj["metadata"].get("labels") or {}):
        return bool(_queue_of(obj))
    if not has_default():
        return False
    _below(obj, ("metadata", "labels"))[QUEUE_LABEL] = DEFAULT_QUEUE
    return True


def _queue_of(obj: Obj) -> str:
    return str((obj["metadata"].get("labels") or {}).get(QUEUE_LABEL) or "")


def _controller(obj: Obj) -> Mapping[str, Any] | None:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _is_child(obj: Obj) -> bool:
    owner = _controller(obj)
    return owner is not None and (str(owner.get("apiVersion")).partition("/")[0], owner.get("kind")) in _HOLDERS


def _has(obj: Obj, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(obj, dict) or part not in obj:
            return False
        obj = obj[part]
    return True


def _below(obj: Obj, path: tuple[str, ...]) -> Obj:
    """The map at that path, which is created if it is missing."""
    for part in path:
        inner = obj.get(part)
        if not isinstance(inner, dict):
            inner = obj[part] = {}
        obj = inner
    return obj
