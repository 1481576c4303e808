"""Reads the objects of a live cluster that the advisor's rules check or look up.

Guarantees: kinds that the user may not read, or that the server does not have, are left out; of the former no object
is reported as missing. ConfigMaps without a word that a rule looks for are kept without their content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from shoal.client.item import Item, Obj
from shoal.client.kind import Kind
from shoal.client.port import Api
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.client.served import answering
from shoal.policy.advised_kinds import LOOKUP_KINDS, by_kind
from shoal.policy.kinds import GroupKind
from shoal.policy.object_set import AdvisedObjects


async def read_advised_objects(api: Api, more: Sequence[GroupKind] = ()) -> AdvisedObjects:
    """`more`: kinds that are read as well."""
    there = {GroupKind(one.kind.group, one.kind.name): one.kind for one in await answering(api)}
    wanted = list(dict.fromkeys((*by_kind(), *LOOKUP_KINDS, *more)))
    served = [(named, there[named]) for named in wanted if named in there]
    # Without its definition a kind has no objects.
    found = AdvisedObjects(complete={named for named in wanted if named not in there})
    lists = await asyncio.gather(*(_listed(api, kind) for _, kind in served))
    for (named, kind), listed in zip(served, lists, strict=True):
        if isinstance(listed, ForbiddenError):
            found.notes.append(f"{kind.plural} are left out: {listed}")
            continue
        found.complete.add(named)
        found.objects.extend(_decoded(named, kind, listed))
    return found


async def _listed(api: Api, kind: Kind) -> list[Item] | ForbiddenError:
    try:
        return (await api.list(kind)).items
    except NotFoundError:
        return []
    except ForbiddenError as error:
        return error


def _decoded(named: GroupKind, kind: Kind, items: list[Item]) -> Iterator[Obj]:
    row = by_kind().get(named)
    for item in sorted(items, key=lambda item: item.key):
        head: Obj = {"apiVersion": kind.api_version, "kind": kind.name}
        if row is not None and row.is_partial and not row.is_judged(item.data):
            yield {**head, "metadata": {"name": item.name, "namespace": item.namespace}}
        else:
            yield {**item.obj(), **head}
