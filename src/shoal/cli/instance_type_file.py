"""Reads the file of `--instance-types`: a list of instance types, alone or under `instanceTypes`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shoal.api.files import read_whole
from shoal.api.yaml_text import read_yaml
from shoal.autoscale.nodes.instance_reading import instance_type_of
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.store.node_planning import TypesOf
from shoal.units.errors import UserError, Where

_MOST_BYTES = 64 * 2**20


def types_of_file(path: Path) -> TypesOf:
    """The types of the file, for every pool."""
    where = Where(file=str(path))
    documents = [value for _, value in read_yaml(read_whole(path, _MOST_BYTES).decode(), str(path))]
    raw = documents[0] if documents else None
    if isinstance(raw, dict):
        raw, where = raw.get("instanceTypes"), where.below("instanceTypes")
    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        raise UserError("must be a list of instance types", where=where, fix="write - name: ... for each of them")
    types = tuple(instance_type_of(each, where.below(f"[{index}]")) for index, each in enumerate(raw))

    def types_of(_pool: NodePool, _zones: Sequence[str]) -> tuple[InstanceType, ...]:
        return types

    return types_of
