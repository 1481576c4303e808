"""Computes from which nodes the volumes of a Workload's pods can be reached before the pods exist.

Guarantees: when an object that a result depends on changes, the workloads with that result are listed (`stirred`). A
result never makes pods wait: a claim that does not exist yet may get its volume anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial

from shoal.api.node_affinity import NodeAffinity
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import NODES, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from shoal.client.volumes.needs import VolumeNeeds
from shoal.store.volumes.reach import rule_of
from shoal.store.volumes.templates import TemplateMounts, mounts_by_pod_set, needed_by, with_default_class
from shoal.store.watched.dependents import Dependents
from shoal.store.watched.volume_heads import places, touched_by

_DEFAULT = ("class by default",)


class TemplateVolumes:
    """`wake` is called when a result may have changed."""

    def __init__(self, context: Context, needs: VolumeNeeds, wake: Callable[[], None]) -> None:
        """Must be created after the owner of `needs`, so that `needs` is updated first."""
        self._needs = needs
        self._wake = wake
        self._nodes = context.informers.of(NODES)
        self._asked = Dependents()
        context.informers.of(VOLUME_CLAIMS).on_change(self._claim_changed)
        context.informers.of(VOLUMES).on_change(self._volume_changed)
        context.informers.of(STORAGE_CLASSES).on_change(self._class_changed)

    def rules(self, key: str, workload: Item) -> dict[str, NodeAffinity]:
        """By pod set; pod sets whose volumes allow every node are not included."""
        rules: dict[str, NodeAffinity] = {}
        hangs_on: list[Hashable] = []
        classes = tuple(self._needs.classes)
        for name, mounts in mounts_by_pod_set(workload).items():
            filled = mounts._replace(made=tuple(with_default_class(one, classes) for one in mounts.made))
            needed = needed_by(self._needs, filled)
            rule = rule_of(self._needs, needed, partial(places, self._nodes))
            if rule is not None:
                rules[name] = rule
            hangs_on += self._hangs_on(filled)
            hangs_on += [_DEFAULT for claim in mounts.made if claim.is_unclassed]
        self._asked.put(key, hangs_on)
        return rules

    def forget(self, key: str) -> None:
        self._asked.drop(key)

    def stirred(self) -> set[str]:
        """Workloads for which the result above may have changed."""
        return self._asked.take()

    # internals

    def _hangs_on(self, mounts: TemplateMounts) -> Iterator[Hashable]:
        for key in mounts.claims:
            yield "claim", key
        there = [claim for key in mounts.claims if (claim := self._needs.claims.get(key)) is not None]
        for claim in (*there, *mounts.made):
            yield "class", claim.class_name
            if claim.spec.volume_name:
                yield "volume", claim.spec.volume_name
            else:
                yield "volumes", claim.class_name

    def _claim_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None:
            self._stir(("claim", item.key))

    def _class_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None:
            self._stir(("class", item.name))
            self._stir(_DEFAULT)

    def _volume_changed(self, before: Item | None, after: Item | None) -> None:
        for item in (before, after):
            if item is not None:
                for what in touched_by(item):
                    self._stir(what)

    def _stir(self, what: Hashable) -> None:
        if self._asked.stir(what):
            self._wake()
