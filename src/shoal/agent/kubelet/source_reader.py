"""Reads the ConfigMaps and Secrets to which pods refer, each at most once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.client.kind import CONFIG_MAPS, SECRETS
from shoal.client.kubelet.references import Reference, Sources, values_in
from shoal.client.port import Api
from shoal.client.refusals import NotFoundError

_KINDS = {"configmap": CONFIG_MAPS, "secret": SECRETS}


class SourceReader:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._found: dict[tuple[str, Reference], Mapping[str, bytes] | None] = {}

    async def read(self, namespace: str, references: Iterable[Reference]) -> Sources:
        """Raises TemporaryError and RefusedError."""
        return {one: await self._one(namespace, one) for one in references}

    async def _one(self, namespace: str, reference: Reference) -> Mapping[str, bytes] | None:
        key = (namespace, reference)
        if key not in self._found:
            kind = _KINDS[reference.of]
            try:
                item = await self._api.get(kind, namespace, reference.name)
                self._found[key] = values_in({"kind": kind.name, **item.obj()})
            except NotFoundError:
                self._found[key] = None
        return self._found[key]
