"""Decodes the parts of nodes and volumes that decide which nodes reach which volumes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import msgspec

from shoal.client.item import Item


class _VolumeMeta(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _VolumeLabels(msgspec.Struct, gc=False):
    metadata: _VolumeMeta


class _OfClass(msgspec.Struct, rename="camel", gc=False):
    storage_class_name: str = ""


class _Volume(msgspec.Struct, gc=False):
    spec: _OfClass


def labels_of(node: Item) -> dict[str, str]:
    return node.read(_VolumeLabels).metadata.labels or {}


def places(nodes: Iterable[Item]) -> Iterator[tuple[str, dict[str, str]]]:
    for node in nodes:
        yield node.name, labels_of(node)


def touched_by(volume: Item) -> tuple[Hashable, ...]:
    """The dependencies that a change of this volume affects: those on the volume itself, and those on the volumes of
    its class.
    """
    return ("volume", volume.name), ("volumes", volume.read(_Volume).spec.storage_class_name)
