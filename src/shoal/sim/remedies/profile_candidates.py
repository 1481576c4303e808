"""Corrects requests for MIG profiles that no node offers: a misspelled profile, or one of another GPU model.

A profile is named by compute slices and memory, so the same slices have another name on another model: `3g.20gb` on an
A100 with 40 GB is `3g.40gb` on one with 80 GB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial

from msgspec import structs

from shoal.data.gpus import PRODUCT_LABEL
from shoal.data.mig import RESOURCE_PREFIX, Layout
from shoal.engine.asks import Ask
from shoal.engine.device_demand import MigTiles
from shoal.sim.remedies.candidates import Candidate, WaitingSubject
from shoal.sim.remedies.node_candidates import admitted
from shoal.sim.remedies.objects import Objects
from shoal.sim.remedies.pod_candidates import profiles_of
from shoal.sim.remedies.trial import RemedyTrial
from shoal.store.mig_relabelling import layout_of_node
from shoal.views.remedies import Remedy, offered_profiles_words, unknown_profile_words
from shoal.views.remedy_commands import edit_commands, edit_words

_NAME = re.compile(r"(?P<compute>[0-9]+)g\.(?P<memory>[0-9]+)gb(?P<more>.*)", re.ASCII)
_ALMOST = re.compile(
    r"(?P<compute>[0-9]+)g[._-]?(?P<memory>[0-9]+)(?:gb?)?(?P<more>(?:\..*)?)", re.ASCII | re.IGNORECASE
)
"""Also with another case, another separator or none, and without the unit or its second letter."""
_MOST_CANDIDATES = 3
_Models = Mapping[str, Layout]
"""By product label."""


class WrongProfile:
    """A profile that no node which may take the subject offers."""

    def __init__(self, trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> None:
        self._trial = trial
        self._subject = subject
        self._objects = objects
        asked = profiles_of(trial.cluster.pending[subject.pods[0]].charge.ask)
        names = admitted(trial, subject, objects.nodes) if asked else ()
        own = _models(objects, names)
        self._models = own or _models(objects, objects.nodes)
        missing = [name for name, _ in asked if not any(one.profile(name) for one in self._models.values())]
        self.name = missing[0] if missing and self._models else ""
        """Empty where all requested profiles are offered."""
        self._near = list(_nearest(self.name, self._models))[:_MOST_CANDIDATES] if self.name else []

    def facts(self, meant: str) -> Iterator[str]:
        """What is wrong, and what the models of the cluster offer. `meant`: the profile with which the subject runs."""
        if not self.name:
            return
        near = self._near[0] if self._near and not self._trial.is_short else ""
        yield unknown_profile_words(self.name, meant, near)
        for product, layout in sorted(_models(self._objects, self._objects.nodes).items()):
            yield offered_profiles_words(product, [_plain(profile.name) for profile in layout.profiles])

    def corrections(self) -> Iterator[tuple[str, Candidate]]:
        """Each profile of as many slices, with the request for it, the nearest first."""
        subject, objects = self._subject, self._objects
        for near in self._near:
            old, new = RESOURCE_PREFIX + self.name, RESOURCE_PREFIX + near
            edits = objects.resource_edits(subject.pods[0], old, new)
            target = objects.target(subject.pods)
            words = edit_words(edits, target) if edits else f"Request {new} instead of {old}."
            commands = edit_commands(edits, target) if edits and objects.is_living else ()

            def apply(stack: ExitStack, near: str = near) -> None:
                change = partial(_renamed, old=self.name, new=near)
                self._trial.change_asks(stack, subject.pods, change, are_new=True)
                if subject.is_gang:
                    self._trial.requeue_gang(stack, subject.name)

            yield near, Candidate(Remedy(words, commands), apply, changes_pods=True, changes_requests=True)


def _models(objects: Objects, names: tuple[str, ...] | Mapping[str, object]) -> dict[str, Layout]:
    found: dict[str, Layout] = {}
    for name in names:
        node = objects.nodes[name]
        product = node.metadata.labels.get(PRODUCT_LABEL, "")
        layout = layout_of_node(node)
        if layout is not None and product not in found:
            found[product] = layout
    return found


def _nearest(name: str, models: _Models) -> Iterator[str]:
    """Profiles with as many compute slices: those with the same attribute first, then those with the nearest memory."""
    asked = _ALMOST.fullmatch(name.replace("+", "."))
    if asked is None:
        return
    found: dict[str, tuple[bool, int, str]] = {}
    for layout in models.values():
        for profile in layout.profiles:
            plain = _plain(profile.name)
            match = _NAME.fullmatch(plain)
            if match is not None and match["compute"] == asked["compute"]:
                distance = abs(int(match["memory"]) - int(asked["memory"]))
                found[plain] = (match["more"] != asked["more"].lower(), distance, plain)
    yield from sorted(found, key=lambda plain: found[plain])


def _plain(profile: str) -> str:
    """As in the names of resources."""
    return profile.replace("+", ".")


def _renamed(ask: Ask, old: str, new: str) -> Ask:
    amounts = tuple((RESOURCE_PREFIX + new if name == RESOURCE_PREFIX + old else name, n) for name, n in ask.requests)
    devices = ask.devices
    if isinstance(devices, MigTiles):
        counts: dict[str, int] = {}
        for name, count in devices.tiles:
            renamed = new if name == old else name
            counts[renamed] = counts.get(renamed, 0) + count
        devices = MigTiles(tuple(sorted(counts.items())))
    return structs.replace(ask, requests=tuple(sorted(amounts)), devices=devices)
