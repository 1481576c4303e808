"""Names the arguments of a configuration of Volcano that have no effect, so that none is passed over in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

_OF_PLUGINS: Mapping[str, tuple[str, ...]] = {
    "capacity": ("ancestorReclaimLevel",),
    "overcommit": ("overcommit-factor",),
    "sla": ("sla-waiting-time",),
    "tdm": ("tdm.revocable-zone.*", "tdm.evict.period"),
    "binpack": ("*",),
    "resource-strategy-fit": ("resources", "resourceStrategyFitWeight"),
    "nodeorder": tuple(
        f"{name}.weight"
        for name in (
            *("nodeaffinity", "podaffinity", "podtopologyspread", "tainttoleration"),
            *("leastrequested", "mostrequested", "balancedresource"),
        )
    ),
}
"""The arguments that are read, by plugin; a plugin that is not named reads none."""
_OF_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "preempt": ("enableTopologyAwarePreemption",),
    "gangpreempt": ("maxDomains", "allowWholeBundle"),
    "gangreclaim": ("maxDomains", "allowWholeBundle"),
}
_WHY: Mapping[tuple[str, str], str] = {
    ("nodeorder", "imagelocality.weight"): "which images a node has is not known",
    ("network-topology-aware", "*"): "the nearest network domain that suffices is always chosen",
    ("tdm", "tdm.evict.*"): "one pod of a job is evicted per period",
    ("rescheduling", "*"): "pods move only where a waiting job then fits",
}
_PREDICATE, _ENABLE = "predicate.", "enable"
_ALIKE = 0.85
"""A likeness below which two names are two arguments, and not one with a mistake."""
_ALWAYS = "the filter always applies"


def unread_of_plugin(plugin: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """What to say of each argument of a plugin that has no effect."""
    for name, value in arguments.items():
        if plugin == "predicates" and name.startswith(_PREDICATE) and name.lower().endswith(_ENABLE):
            # On is what the filters are.
            if value in (False, "false"):
                yield f"argument {name} has no effect: {_ALWAYS}"
        else:
            yield from _unread(plugin, name, _OF_PLUGINS.get(plugin, ()))


def unread_of_action(action: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in arguments:
        yield from _unread(action, name, _OF_ACTIONS.get(action, ()))


def _unread(of: str, name: str, known: tuple[str, ...]) -> Iterator[str]:
    plain = _plain(of, name)
    if any(fnmatchcase(plain, pattern) for pattern in known):
        return
    why = next((why for (owner, pattern), why in _WHY.items() if owner == of and fnmatchcase(plain, pattern)), "")
    near = get_close_matches(name, known, 1, _ALIKE)
    meant = f"; did you mean {near[0]}?" if near else ""
    yield f"argument {name} is not read{': ' + why if why else meant}"


def _plain(of: str, name: str) -> str:
    """`LeastRequestedWeight` is the same as `leastrequested.weight`."""
    if of != "nodeorder":
        return name
    return f"{name.lower().removesuffix('weight').removesuffix('.')}.weight"
